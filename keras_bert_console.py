"""Entry point of the command `keras-bert`, also `python -m keras_bert_console`.

It lies beside the package, not in it: while this module is loaded, `import keras_bert_impl` opens
nothing by itself, so that `keras-bert --help` need not wait for TensorFlow.
"""

import sys

sys.modules.setdefault("keras_bert_console", sys.modules[__name__])


def main() -> int:
    """Runs the command line and returns its exit code."""
    try:
        from keras_bert_impl.cli import main as run

        return run()
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
