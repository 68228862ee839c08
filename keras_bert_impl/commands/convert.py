"""`keras-bert convert`."""

import dataclasses
import json
import typing
from typing import Any

from jsonargparse import ArgumentParser, Namespace

from keras_bert_impl.commands.say import say
from keras_bert_impl.errors import InputError
from keras_bert_impl.quiet import import_tensorflow


def add_options(parser: ArgumentParser) -> None:
    """Gives the parser this command's options."""
    parser.add_argument("source", type=str, metavar="SOURCE", help="a model in any format that is known")
    parser.add_argument("target", type=str, metavar="TARGET", help="directory to write; a file for --to keras")
    parser.add_argument(
        "--to", type=typing.Literal["huggingface", "keras_hub", "keras"], required=True, help="format of TARGET"
    )
    parser.add_argument("--architecture", type=str, help="what TARGET is to be; BertModel leaves all heads")
    parser.add_argument("--vocab", type=str, help="vocabulary file; the one beside the weights if none")
    parser.add_argument("--labels", type=str, nargs="+", help="names for the numbered outputs of a classifier")
    many: dict[str, Any] = {"type": str, "nargs": "+", "default": []}
    parser.add_argument("--fresh", **many, help="of pooler, mlm_head, nsp_head, classifier, qa_head: start fresh")
    parser.add_argument("--allow-missing", **many, help="parts that SOURCE may lack and that then start fresh")
    parser.add_argument("--allow-unused", **many, help="parts of SOURCE that may be left")
    parser.add_argument("--allow-inexact", **many, help="parts that compute something else where they come from")
    parser.add_argument("--add-tokens", **many, help="words to add to the vocabulary")
    parser.add_argument("--add-tokens-from", type=str, help="file of words to add, one on a line")
    token_rules = typing.Literal["pieces", "mean", "random"]
    parser.add_argument("--token-rule", type=token_rules, default="pieces", help="where rows of new words come from")
    parser.add_argument("--max-position-embeddings", type=int, help="longest sequence of TARGET, in tokens")
    rules = typing.Literal["repeat", "interpolate", "random"]
    parser.add_argument(
        "--position-rule", type=rules, default="repeat", help="where the rows of more positions come from"
    )
    parser.add_argument("--num-hidden-layers", type=int, help="keep only the first transformer blocks")
    parser.add_argument("--blocks", type=int, nargs="+", help="keep these transformer blocks, counted from 0")
    parser.add_argument("--seed", type=int, default=0, help="seed of rows and parts that start fresh")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(options: Namespace) -> None:
    """Runs the command."""
    if options.blocks and options.num_hidden_layers is not None:
        raise InputError(
            "`blocks` and `num_hidden_layers` cannot both be given. Received: "
            f"blocks={options.blocks}, num_hidden_layers={options.num_hidden_layers}"
        )
    from keras_bert_impl.convert import Conversion, Surgery, convert, read_words
    from keras_bert_impl.inspection import needs_tensorflow

    from_file = [] if options.add_tokens_from is None else read_words(options.add_tokens_from)
    conversion = Conversion(
        **{field.name: options[field.name] for field in dataclasses.fields(Conversion) if field.name != "surgery"},
        surgery=Surgery(
            add_tokens=[*options.add_tokens, *from_file],
            token_rule=options.token_rule,
            max_position_embeddings=options.max_position_embeddings,
            position_rule=options.position_rule,
            blocks=options.blocks or options.num_hidden_layers,
            seed=options.seed,
        ),
    )
    if not needs_tensorflow(options.source):
        conversion.open()  # says what is wrong before TensorFlow's start
    import_tensorflow(options.verbose)
    result = convert(conversion, say=(lambda line: None) if options.json else say)
    if options.json:
        print(json.dumps(result, indent=2, ensure_ascii=False))
