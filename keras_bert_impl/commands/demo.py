"""`keras-bert demo`."""

from jsonargparse import ArgumentParser, Namespace

from keras_bert_impl.commands.say import say


def add_options(parser: ArgumentParser) -> None:
    """Gives the parser this command's options."""
    parser.add_argument("--input", type=str, nargs="+", help="your own text files; the installed documentation if none")
    parser.add_argument("--text", type=str, help="only write the text that the demo learns from to this file")
    parser.add_argument("--output", type=str, default="demo-output", help="directory for all that the demo makes")
    parser.add_argument("--seed", type=int, default=1, help="seed of every step")
    parser.add_argument("--steps", type=int, default=None, help="training steps; chosen for two cores when not given")


def run(options: Namespace) -> None:
    """Runs the command."""
    if options.text:
        from keras_bert_impl.training.corpus.installed_docs import write_installed_docs

        write_installed_docs(options.text, say=say)
        return
    from keras_bert_impl.demo import run_demo

    run_demo(options.output, inputs=options.input or (), seed=options.seed, steps=options.steps, say=say)
