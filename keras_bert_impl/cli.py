"""The front door `keras-bert`: the only file that opens every room, and each only when it is asked for.

Options are built from the settings classes by jsonargparse, which also reads `--config` files.
"""

import contextlib
import dataclasses
import json
import os
import re
import signal
import sys
import threading
import typing
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

from jsonargparse import ActionConfigFile, ActionYesNo, ArgumentParser, Namespace

import keras_bert_impl
from keras_bert_impl.errors import InputError
from keras_bert_impl.quiet import import_tensorflow, silence_logs
from keras_bert_impl.settings_text import MODE as SETTINGS_MODE
from keras_bert_impl.training.configs import EvaluateConfig, PrepareConfig, PretrainConfig, Settings, VocabConfig

EXIT_USER_MISTAKE = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code: 0, 2 for the user's mistakes, 130 or 143 when stopped."""
    with _stop_signals() as stopped:
        try:
            _run(sys.argv[1:] if arguments is None else list(arguments))
        except (Exception, KeyboardInterrupt) as error:
            if stopped:  # libraries turn the interruption into errors of their own
                print("Interrupted.", file=sys.stderr)
                return 128 + stopped[0]
            sentence = _mistake(error)
            if sentence is None:
                raise
            return _complain(sentence)
    return 0


def _run(arguments: list[str]) -> None:
    if sys.stdout is None:  # closed by the caller
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115
    try:
        parsed = build_parser().parse_args(_with_beam_as_one_word(arguments))
    except UnicodeDecodeError as error:
        raise InputError(f"`config` must be UTF-8 text. Received: byte {error.start} cannot be read") from error
    options = parsed[parsed.command]
    if not options.verbose:
        silence_logs()
    try:
        COMMANDS[parsed.command].run(options)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader (`| head`) has gone; point the stream elsewhere so that the interpreter's last flush is quiet.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _with_beam_as_one_word(arguments: list[str]) -> list[str]:
    """Joins `--beam` and what follows; by itself, that would be taken for an option of ours."""
    if arguments[:1] != ["prepare"] or "--beam" not in arguments[:-1]:
        return arguments
    place = arguments.index("--beam")
    return [*arguments[:place], f"--beam={arguments[place + 1]}", *arguments[place + 2 :]]


@contextlib.contextmanager
def _stop_signals() -> Iterator[list[int]]:
    """Lets Ctrl-C and SIGTERM end the work in order, with nothing half-written; yields which one came."""
    stopped: list[int] = []

    def stop(number: int, frame: Any) -> None:
        stopped.append(number)
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield stopped
        return
    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stopped
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _mistake(error: BaseException) -> str | None:
    """Returns the sentence for an error that the user can mend, None for one that is ours."""
    if isinstance(error, InputError):
        return str(error)
    if "No space left on device" in str(error) and not isinstance(error, OSError):
        return "No space left on device; nothing was left half-written."
    if isinstance(error, OSError):
        place = f" at {error.filename!r}" if error.filename else ""
        return f"{error.strerror or error}{place}; nothing was left half-written."
    return None


def _as_options(sentence: str) -> str:
    """Spells advice such as `allow_missing=('pooler',)` as an option, `--allow-missing pooler`."""

    def spell(advice: re.Match[str]) -> str:
        values = re.findall(r"'([^']*)'", advice[2])
        return f"`--{advice[1].replace('_', '-')} {' '.join(values)}`"

    return re.sub(r"`(fresh|allow_\w+|architecture)=(\([^()`]*\)|'[^'`]*')`( of `convert`)?", spell, sentence)


def _complain(sentence: str) -> int:
    print(f"keras-bert: {_as_options(sentence)}", file=sys.stderr)
    return EXIT_USER_MISTAKE


def say(line: str) -> None:
    """Prints one line of narration at once."""
    print(line, flush=True)


# ---------------------------------------------------------------------------------------- the commands


def _vocab(options: Namespace) -> None:
    from keras_bert_impl.training.vocab import learn_vocab

    learn_vocab(_settings(VocabConfig, options), say=say)


def _prepare(options: Namespace) -> None:
    config = _settings(PrepareConfig, options)
    if options.beam is not None:
        from keras_bert_impl.training.beam_prepare import prepare_with_beam

        prepare_with_beam(config, options.beam, say=say)
        return
    if config.writes_records:
        import_tensorflow(options.verbose)
    from keras_bert_impl.training.prepare import prepare

    prepare(config, say=say)


def _pretrain(options: Namespace) -> None:
    config = _settings(PretrainConfig, options)
    import_tensorflow(options.verbose)
    from keras_bert_impl.training.pretrain import pretrain

    pretrain(config, say=say)


def _evaluate(options: Namespace) -> None:
    config = _settings(EvaluateConfig, options)
    import_tensorflow(options.verbose)
    from keras_bert_impl.training.evaluate import evaluate

    evaluate(config, say=say)


def _fill_mask(options: Namespace) -> None:
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


def _inspect(options: Namespace) -> None:
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


def _convert(options: Namespace) -> None:
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


def _export(options: Namespace) -> None:
    import_tensorflow(options.verbose)
    from keras_bert_impl.serving.saved_model import export_saved_model

    export_saved_model(options.model, options.target, top=options.top, say=say)


def _serve(options: Namespace) -> None:
    import_tensorflow(options.verbose)
    from keras_bert_impl.serving.local_server import serve

    serve(options.export, host=options.host, rest_port=options.rest_port, model_name=options.model_name, say=say)


def _demo(options: Namespace) -> None:
    if options.text:
        from keras_bert_impl.training.corpus.installed_docs import write_installed_docs

        write_installed_docs(options.text, say=say)
        return
    from keras_bert_impl.demo import run_demo

    run_demo(options.output, inputs=options.input or (), seed=options.seed, steps=options.steps, say=say)


# ----------------------------------------------------------------------------------------- the parser


class _Parser(ArgumentParser):
    """Says what is wrong in one sentence instead of printing the usage."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, parser_mode=SETTINGS_MODE, **options)

    def error(self, message: str, ex: Exception | None = None) -> NoReturn:
        sentence = _one_sentence(message)
        if re.search(r"is not a setting|not expected|unrecognized arguments", sentence):
            subcommand = re.search(r"is not a setting of `([\w-]+)`", sentence)
            known = _settings_of(_subparsers(self)[subcommand[1]] if subcommand else self)
            sentence += f" Known settings: {', '.join(known)}." if known else ""
        raise InputError(sentence)


def _subparsers(parser: ArgumentParser) -> Any:
    return next(action.choices for action in parser._actions if action.dest == "command")


def _settings_of(parser: ArgumentParser) -> list[str]:
    service = {"help", "config", "verbose", "version", "command"}
    names = {action.dest for action in parser._actions if "." not in action.dest} - service
    return sorted(name for name in names if not name.startswith("print_"))


_KINDS = {
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "str": "text",
    "dict": "a mapping, as JSON",
    "list": "a list",
    "NoneType": "null",
}


def _one_sentence(message: str) -> str:
    """Joins the library's lines into one and says in our words what only a programmer understands."""
    text = " ".join(message.split())
    text = re.sub(r"""Parser key ["'](\w+)["']( element \d+)?: ?""", r"`\1`\2: ", text)
    text = re.sub(r"Does not validate .* Subtypes: \[(.*?)\] Errors: .* Given value: ", _expected_one_of, text)
    text = re.sub(r"[Ee]xpected an? typing\.Literal\[(.*?)\]", r"must be \1", text)
    text = re.sub(r"[Ee]xpected an? (?:<class ')?(\w+)(?:'>)?", lambda m: f"must be {_KINDS.get(m[1], m[1])}", text)
    text = text.replace("Got value: ", "Received: ")
    text = re.sub(r"Unexpected config:.*", "`config` must be a file that maps settings to values", text)
    text = re.sub(r"Subcommand '([\w-]+)' does not accept option '([\w.-]+)'", r"`\2` is not a setting of `\1`", text)
    text = re.sub(rf"\b(?:{'|'.join(COMMANDS)})\.(?=\w)", "", text)
    return text if text.endswith((".", "?", "!")) else text + "."


def _expected_one_of(union: re.Match[str]) -> str:
    kinds = re.findall(r"<class '(\w+)'>|(\w+)\[", union[1])
    return f"must be {' or '.join(_KINDS.get(a or b, a or b) for a, b in kinds)}. Received: "


@dataclasses.dataclass(frozen=True)
class Command:
    """One subcommand: what the overview says of it, its options, and what runs it."""

    summary: str
    add_options: Callable[[ArgumentParser], None]
    run: Callable[[Namespace], None]


def _from_settings(settings: type[Settings], positional: Sequence[str] = ()) -> Callable[[ArgumentParser], None]:
    """Returns a function that gives the parser an option for each field, and `--config` for a file of them."""

    def add_options(parser: ArgumentParser) -> None:
        parser.add_argument(
            "--config", action=ActionConfigFile, help="YAML or JSON file of settings; options override it"
        )
        hints = typing.get_type_hints(settings)
        for field in dataclasses.fields(settings):  # type: ignore[arg-type]
            _add_field(parser, field, hints[field.name], field.name in positional)

    return add_options


def _add_field(parser: ArgumentParser, field: dataclasses.Field, hint: Any, positional: bool) -> None:
    many = typing.get_origin(hint) is tuple
    item = typing.get_args(hint)[0] if many else hint
    text = field.metadata["help"]
    if positional:
        nargs = "+" if many else None
        parser.add_argument(field.name, type=item, nargs=nargs, help=text, metavar=field.name.rstrip("s").upper())
        return
    flag = "--" + field.name.replace("_", "-")
    required, default = _default(field)
    if hint is bool:
        parser.add_argument(flag, action=ActionYesNo(no_prefix="no-"), default=default, help=text)
    elif many and dataclasses.is_dataclass(item):
        # Plain mappings: the settings class checks their keys and says which it knows.
        rows = [{key: value for key, value in entry.to_dict().items() if value is not None} for entry in default]
        parser.add_argument(flag, type=list[dict[str, Any]], default=rows, help=text)
    elif many or hint == tuple[int, ...] | None:
        parser.add_argument(flag, type=item if many else int, nargs="+", default=default, required=required, help=text)
    else:
        parser.add_argument(flag, type=hint, default=default, required=required, help=text)


def _default(field: dataclasses.Field) -> tuple[bool, Any]:
    """Returns whether the field must be given, and its default with tuples as the parser's lists."""
    if field.default is not dataclasses.MISSING:
        return False, field.default
    if field.default_factory is not dataclasses.MISSING:
        return False, list(field.default_factory())
    return True, None


def _settings(cls: type[Any], options: Namespace) -> Any:
    """Builds the settings object from the parsed options."""
    names = [field.name for field in dataclasses.fields(cls)]
    return cls(**{name: options[name] for name in names})


def _prepare_options(parser: ArgumentParser) -> None:
    _from_settings(PrepareConfig, ["inputs"])(parser)
    parser.add_argument(
        "--beam",
        type=str,
        metavar="OPTIONS",
        help="run as a pipeline of Apache Beam with these options, such as '--runner=DirectRunner'",
    )


def _fill_mask_options(parser: ArgumentParser) -> None:
    parser.add_argument("model", type=str, metavar="MODEL", help="model directory or run directory")
    parser.add_argument("texts", type=str, nargs="+", metavar="TEXT", help='text with one or more "[MASK]"')
    parser.add_argument("--top", type=int, default=5, help="candidates per mask")
    parser.add_argument("--json", action="store_true", help="print JSON")


def _inspect_options(parser: ArgumentParser) -> None:
    parser.add_argument("path", type=str, metavar="PATH", help="model, run, prepared data or export")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--attention", type=str, metavar="TEXT", help="draw what each token of a text looks at")
    parser.add_argument("--attention-pair", type=str, metavar="TEXT", help="a second text beside it")
    parser.add_argument("--output", type=str, default="attention.html", help="the page that --attention writes")


def _convert_options(parser: ArgumentParser) -> None:
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


def _export_options(parser: ArgumentParser) -> None:
    parser.add_argument("model", type=str, metavar="MODEL", help="model directory or run directory")
    parser.add_argument("target", type=str, metavar="TARGET_DIR", help="directory that gets a numbered version")
    parser.add_argument("--format", type=typing.Literal["savedmodel"], default="savedmodel", help="form of the export")
    parser.add_argument("--top", type=int, default=5, help="candidates per mask in the answer")


def _serve_options(parser: ArgumentParser) -> None:
    parser.add_argument("export", type=str, metavar="EXPORT_DIR", help="directory that `export` wrote")
    parser.add_argument("--host", type=str, default="127.0.0.1", help="address to listen on")
    parser.add_argument("--rest-port", type=int, default=8501, help="port of the REST interface; 0 for a free one")
    parser.add_argument("--model-name", type=str, default="bert", help="name in the address: /v1/models/NAME")


def _demo_options(parser: ArgumentParser) -> None:
    parser.add_argument("--input", type=str, nargs="+", help="your own text files; the installed documentation if none")
    parser.add_argument("--text", type=str, help="only write the text that the demo learns from to this file")
    parser.add_argument("--output", type=str, default="demo-output", help="directory for all that the demo makes")
    parser.add_argument("--seed", type=int, default=1, help="seed of every step")
    parser.add_argument("--steps", type=int, default=None, help="training steps; chosen for two cores when not given")


COMMANDS: dict[str, Command] = {
    "vocab": Command("learn a WordPiece vocabulary, or extend one", _from_settings(VocabConfig, ["inputs"]), _vocab),
    "prepare": Command("turn text into pretraining examples", _prepare_options, _prepare),
    "pretrain": Command("pretrain BERT on prepared data", _from_settings(PretrainConfig), _pretrain),
    "evaluate": Command("measure a model on held-out data", _from_settings(EvaluateConfig, ["model"]), _evaluate),
    "fill-mask": Command("let a model fill in [MASK]", _fill_mask_options, _fill_mask),
    "convert": Command("write a model in another format, or of another size", _convert_options, _convert),
    "inspect": Command("say what a model, run, data or export is, or draw its attention", _inspect_options, _inspect),
    "export": Command("export a model for TensorFlow Serving", _export_options, _export),
    "serve": Command("serve an export on this machine", _serve_options, _serve),
    "demo": Command("go the whole way once, on real text", _demo_options, _demo),
}


def build_parser() -> ArgumentParser:
    """Returns the parser of all subcommands; it opens no room but the settings."""
    parser = _Parser(prog="keras-bert", description=keras_bert_impl.__doc__, allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"keras-bert {keras_bert_impl.__version__}")
    subcommands = parser.add_subcommands(dest="command", required=True)
    for name, command in COMMANDS.items():
        sub = _Parser(description=command.summary[0].upper() + command.summary[1:] + ".", allow_abbrev=False)
        command.add_options(sub)
        sub.add_argument("--verbose", action="store_true", help="show TensorFlow's own log lines too")
        subcommands.add_subcommand(name, sub, help=command.summary)
    return parser
