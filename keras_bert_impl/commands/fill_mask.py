"""`keras-bert fill-mask`."""

import json
from typing import Any

from jsonargparse import ArgumentParser, Namespace

from keras_bert_impl.commands.say import say
from keras_bert_impl.errors import InputError
from keras_bert_impl.quiet import import_tensorflow


def add_options(parser: ArgumentParser) -> None:
    """Gives the parser this command's options."""
    parser.add_argument("model", type=str, metavar="MODEL", help="model directory, run directory or .tflite file")
    parser.add_argument("texts", type=str, nargs="+", metavar="TEXT", help='text with one or more "[MASK]"')
    parser.add_argument("--top", type=int, default=5, help="candidates per mask")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(options: Namespace) -> None:
    """Runs the command."""
    if options.model.endswith(".tflite"):
        answers = _of_file(options)
    else:
        import_tensorflow(options.verbose)
        from keras_bert_impl.serving.fill_mask import fill_mask

        answers = fill_mask(options.model, options.texts, top=options.top)
    if options.json:
        print(json.dumps([{"text": t, "masks": a} for t, a in zip(options.texts, answers, strict=True)], indent=2))
        return
    for text, masks in zip(options.texts, answers, strict=True):
        say(text)
        for number, candidates in enumerate(masks, start=1):
            words = "   ".join(f"{c['token']} {_probability(c['probability'])}" for c in candidates)
            say(f"  mask {number}: {words}")


def _of_file(options: Namespace) -> Any:
    """Asks a TFLite file; opens no TensorFlow."""
    from keras_bert_impl.serving.tflite.runner import TFLiteModel

    model = TFLiteModel(options.model)
    if model.contents.kind != "fill-mask":
        raise InputError(
            f"`model` must fill masks. Received: {options.model!r}, for {model.contents.kind}; "
            "`keras-bert predict` asks it"
        )
    return model.answers()(options.texts, top=options.top)


def _probability(value: float) -> str:
    return f"{value:.3f}" if value >= 0.001 else f"{value:.1e}"
