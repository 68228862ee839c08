"""`keras-bert fill-mask`."""

import json

from jsonargparse import ArgumentParser, Namespace

from keras_bert_impl.commands.say import say
from keras_bert_impl.quiet import import_tensorflow


def add_options(parser: ArgumentParser) -> None:
    """Gives the parser this command's options."""
    parser.add_argument("model", type=str, metavar="MODEL", help="model directory or run directory")
    parser.add_argument("texts", type=str, nargs="+", metavar="TEXT", help='text with one or more "[MASK]"')
    parser.add_argument("--top", type=int, default=5, help="candidates per mask")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(options: Namespace) -> None:
    """Runs the command."""
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


def _probability(value: float) -> str:
    return f"{value:.3f}" if value >= 0.001 else f"{value:.1e}"
