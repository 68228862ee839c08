"""`keras-bert inspect`, and the picture of attention."""

import json

from jsonargparse import ArgumentParser, Namespace

from keras_bert_impl.commands.say import say
from keras_bert_impl.errors import InputError
from keras_bert_impl.quiet import import_tensorflow


def add_options(parser: ArgumentParser) -> None:
    """Gives the parser this command's options."""
    parser.add_argument("path", type=str, metavar="PATH", help="model, run, prepared data or export")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--attention", type=str, metavar="TEXT", help="draw what each token of a text looks at")
    parser.add_argument("--attention-pair", type=str, metavar="TEXT", help="a second text beside it")
    parser.add_argument("--output", type=str, default="attention.html", help="the page that --attention writes")


def run(options: Namespace) -> None:
    """Runs the command."""
    if options.attention is not None:
        _draw_attention(options)
        return
    if options.attention_pair is not None:
        raise InputError("`attention_pair` needs a first text. Received: no `attention`")
    from keras_bert_impl.inspection import describe, inspect, needs_tensorflow

    if needs_tensorflow(options.path):
        import_tensorflow(options.verbose)
    facts = inspect(options.path)
    print(json.dumps(facts, indent=2) if options.json else describe(facts))


def _draw_attention(options: Namespace) -> None:
    import_tensorflow(options.verbose)
    from keras_bert_impl.attention_picture import write_attention_picture

    picture = write_attention_picture(
        options.path,
        options.attention,
        options.output,
        text_pair=options.attention_pair,
        say=(lambda line: None) if options.json else say,
    )
    if options.json:
        print(json.dumps({"output": str(picture)}))
