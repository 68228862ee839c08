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
from typing import Any

from jsonargparse import ArgumentParser, Namespace

import keras_bert_impl
from keras_bert_impl.command_parser import Parser, options_of, settings_from, taken_out
from keras_bert_impl.errors import InputError, StoppedBySignal, WorkerLostError
from keras_bert_impl.quiet import import_tensorflow, silence_logs
from keras_bert_impl.training.configs import (
    EvaluateConfig,
    FinetuneConfig,
    PredictConfig,
    PrepareConfig,
    PretrainConfig,
    VocabConfig,
)

EXIT_USER_MISTAKE = 2
EXIT_WORKER_LOST = 75  # EX_TEMPFAIL of sysexits.h: the same again may go well


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code: 0; 2 for the user's mistakes; 75 when another machine of a cluster is
    lost; 130 or 143 when stopped.
    """
    with _stop_signals() as stopped:
        try:
            _run(sys.argv[1:] if arguments is None else list(arguments))
        except WorkerLostError as error:
            print(f"keras-bert: {error}", file=sys.stderr)
            return EXIT_WORKER_LOST
        except StoppedBySignal as error:
            print(f"keras-bert: {error}", file=sys.stderr)
            return 128 + error.number
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
        parsed = _parse(_with_beam_as_one_word(arguments))
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


def _parse(arguments: list[str]) -> Namespace:
    """Returns the command and its options, where the command line overrides files, and these a recipe."""
    command, rest = arguments[:1], arguments[1:]
    if not command or command[0] not in COMMANDS_WITH_CONFIG:
        return build_parser().parse_args(arguments)
    recipe, rest = taken_out("--recipe", rest) if command == ["pretrain"] else ([], rest)
    if rest[-1:] == ["--recipe"] and command == ["pretrain"]:
        recipe = ["--recipe="]
    files, rest = taken_out("--config", rest)
    own = [*command, *files, *rest]
    parsed = build_parser().parse_args([*command, *_recipe_files(recipe), *own[1:]])
    options = parsed[command[0]]
    if recipe and options.init is not None and (options.preset or options.model):
        given = build_parser().parse_args(own)[command[0]]
        if given.preset is None and given.model is None:
            say("`init` says what the model is: preset and model of the recipe are left out.")
            options.preset = options.model = None
    return parsed


def _recipe_files(words: list[str]) -> list[str]:
    """Returns the options that read the settings files of recipes."""
    from keras_bert_impl.training import recipes

    names = [word.removeprefix("--recipe=") for word in words if word != "--recipe"]
    return [word for name in names for word in ("--config", str(recipes.path(name)))]


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
    if isinstance(error, UnicodeEncodeError) and error.reason == "surrogates not allowed":
        return f"Names and texts must be UTF-8. Received: {error.object!r}"
    if isinstance(error, OSError):
        place = f" at {error.filename!r}" if error.filename else ""
        return f"{error.strerror or error}{place}; nothing was left half-written."
    return None


def _as_options(sentence: str) -> str:
    """Spells settings of columns, and advice such as `allow_missing=('pooler',)`, as options."""

    def spell(advice: re.Match[str]) -> str:
        values = re.findall(r"'([^']*)'", advice[2])
        return f"`--{advice[1].replace('_', '-')} {' '.join(values)}`"

    sentence = re.sub(r"`(text|label|id|text_pair)_column`", lambda m: f"`--{m[1]}-column`".replace("_", "-"), sentence)
    return re.sub(r"`(fresh|allow_\w+|architecture)=(\([^()`]*\)|'[^'`]*')`( of `convert`)?", spell, sentence)


def _complain(sentence: str) -> int:
    print(f"keras-bert: {_as_options(sentence)}", file=sys.stderr)
    return EXIT_USER_MISTAKE


def say(line: str) -> None:
    """Prints one line of narration at once."""
    print(line, flush=True)


def say_beside(line: str) -> None:
    """Prints one line of narration on the error stream, where standard output is for answers."""
    with contextlib.suppress(OSError):  # nobody reads it any more
        print(line, file=sys.stderr, flush=True)


# ---------------------------------------------------------------------------------------- the commands


def _vocab(options: Namespace) -> None:
    from keras_bert_impl.training.vocab import learn_vocab

    learn_vocab(settings_from(VocabConfig, options), say=say)


def _prepare(options: Namespace) -> None:
    config = settings_from(PrepareConfig, options)
    if options.beam is not None:
        from keras_bert_impl.training.beam_prepare import prepare_with_beam

        prepare_with_beam(config, options.beam, say=say)
        return
    if config.writes_records:
        import_tensorflow(options.verbose)
    from keras_bert_impl.training.prepare import prepare

    prepare(config, say=say)


def _pretrain(options: Namespace) -> None:
    config = settings_from(PretrainConfig, options)
    import_tensorflow(options.verbose)
    from keras_bert_impl.training.pretrain import pretrain
    from keras_bert_impl.training.stopping import sure_to_stop

    with sure_to_stop():
        pretrain(config, say=say)


def _evaluate(options: Namespace) -> None:
    config = settings_from(EvaluateConfig, options)
    if config.input:
        from keras_bert_impl.training.finetuning.askers import task_of

        task_of(config.model)  # says what is wrong before TensorFlow's start
    import_tensorflow(options.verbose)
    from keras_bert_impl.training.evaluate import evaluate

    evaluate(config, say=say)


def _finetune(options: Namespace) -> None:
    config = settings_from(FinetuneConfig, options)
    from keras_bert_impl.training.finetuning.before_start import check_settings

    check_settings(config)
    import_tensorflow(options.verbose)
    from keras_bert_impl.training.finetuning.finetune import finetune
    from keras_bert_impl.training.stopping import sure_to_stop

    with sure_to_stop():
        finetune(config, say=say)


def _predict(options: Namespace) -> None:
    config = settings_from(PredictConfig, options)
    from keras_bert_impl.training.finetuning.predict import checked, predict

    checked(config)  # says what is wrong before TensorFlow's start
    import_tensorflow(options.verbose)
    predict(config, say=say_beside)


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
    if options.format == "onnx":
        if options.top is not None:
            raise InputError(
                f"`top` must be left out of an ONNX export, which answers with all logits. Received: top={options.top}"
            )
        for name in ("tokenizer_ops", "attention", "deploy", "model_name"):
            if options[name]:
                raise InputError(
                    f"`{name}` must be left out of an ONNX export, which TensorFlow Serving does not load. "
                    f"Received: {name}={options[name]!r}"
                )
        import_tensorflow(options.verbose)
        from keras_bert_impl.serving.onnx_export import export_onnx

        export_onnx(options.model, options.target, say=say)
        return
    from keras_bert_impl.serving.deploy.deployment import check_deployment, write_deployment

    model_name = options.model_name or "bert"
    if options.deploy is not None:
        check_deployment(options.deploy, model_name)  # says what is wrong before TensorFlow's start
    elif options.model_name is not None:
        raise InputError(
            "`model_name` must be left out where no files of a server are written: an export has no name. "
            f"Received: model_name={options.model_name!r} without `deploy`"
        )
    import_tensorflow(options.verbose)
    from keras_bert_impl.serving.saved_model import export_saved_model

    export_saved_model(
        options.model,
        options.target,
        top=options.top,
        tokenizer_ops=options.tokenizer_ops or "core",
        attention=options.attention,
        say=say,
    )
    if options.deploy is not None:
        write_deployment(options.target, options.deploy, model_name=model_name, say=say)


def _serve(options: Namespace) -> None:
    from keras_bert_impl.serving.local_server import named_exports, serve
    from keras_bert_impl.serving.server.settings import ServerSettings

    models = named_exports(options.exports, options.model_name)
    settings = {field.name: options[field.name] for field in dataclasses.fields(ServerSettings)}
    settings |= {f"{protocol}_port": None for protocol in ("rest", "grpc") if options[f"no_{protocol}"]}
    ServerSettings(**settings)  # says what is wrong before TensorFlow's start
    import_tensorflow(options.verbose)
    serve(models, say=say, **settings)


def _demo(options: Namespace) -> None:
    if options.text:
        from keras_bert_impl.training.corpus.installed_docs import write_installed_docs

        write_installed_docs(options.text, say=say)
        return
    from keras_bert_impl.demo import run_demo

    run_demo(options.output, inputs=options.input or (), seed=options.seed, steps=options.steps, say=say)


# ---------------------------------------------------------------------------------- the options


@dataclasses.dataclass(frozen=True)
class Command:
    """One subcommand: what the overview says of it, its options, and what runs it."""

    summary: str
    add_options: Callable[[ArgumentParser], None]
    run: Callable[[Namespace], None]


def _prepare_options(parser: ArgumentParser) -> None:
    options_of(PrepareConfig, ["inputs"])(parser)
    parser.add_argument(
        "--beam",
        type=str,
        metavar="OPTIONS",
        help="run as a pipeline of Apache Beam with these options, such as '--runner=DirectRunner'",
    )


def _pretrain_options(parser: ArgumentParser) -> None:
    options_of(PretrainConfig)(parser)
    parser.add_argument("--recipe", type=str, metavar="NAME", help="settings that come with the package, by their name")


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
    parser.add_argument(
        "target", type=str, metavar="TARGET_DIR", help="directory that gets a numbered version; for ONNX, a new one"
    )
    formats = typing.Literal["savedmodel", "onnx"]
    parser.add_argument("--format", type=formats, default="savedmodel", help="form of the export")
    parser.add_argument("--top", type=int, help="candidates per mask in the answer of a model that fills masks (5)")
    parser.add_argument(
        "--tokenizer-ops",
        type=typing.Literal["core", "text"],
        help="text: a faster tokenizer, for servers that have the operations of tensorflow-text which it needs (core)",
    )
    parser.add_argument("--attention", action="store_true", help="add a signature that shows the attention")
    parser.add_argument(
        "--deploy", type=str, metavar="DIR", help="directory for files that put the export on TensorFlow Serving"
    )
    parser.add_argument("--model-name", type=str, help="name of the model on the server of --deploy (bert)")


def _serve_options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "exports",
        type=str,
        nargs="+",
        metavar="EXPORT_DIR",
        help="directory that `export` wrote; NAME=EXPORT_DIR for several models",
    )
    parser.add_argument("--host", type=str, default="127.0.0.1", help="address to listen on")
    parser.add_argument("--rest-port", type=int, default=8501, help="port of the REST interface; 0 for a free one")
    parser.add_argument("--grpc-port", type=int, default=8500, help="port of the gRPC interface; 0 for a free one")
    parser.add_argument("--no-rest", action="store_true", help="no REST interface")
    parser.add_argument("--no-grpc", action="store_true", help="no gRPC interface")
    parser.add_argument(
        "--model-name", type=str, default="bert", help="name of a model without NAME=, as in /v1/models/NAME"
    )
    parser.add_argument("--max-body-mb", type=float, default=32, help="requests of more megabytes are refused")
    parser.add_argument("--max-request-rows", type=int, default=1024, help="requests of more rows are refused")
    parser.add_argument(
        "--max-batch-rows", type=int, default=32, help="rows up to which requests are joined into one run; 1 for none"
    )
    parser.add_argument(
        "--batch-timeout-ms", type=float, default=2, help="milliseconds that a request is held back for others"
    )
    parser.add_argument("--max-waiting", type=int, default=256, help="requests that may wait; more are refused")
    parser.add_argument("--poll-seconds", type=float, default=1, help="how often new versions are looked for")
    parser.add_argument("--json-log", action="store_true", help="a line of JSON for each request on the error stream")


def _demo_options(parser: ArgumentParser) -> None:
    parser.add_argument("--input", type=str, nargs="+", help="your own text files; the installed documentation if none")
    parser.add_argument("--text", type=str, help="only write the text that the demo learns from to this file")
    parser.add_argument("--output", type=str, default="demo-output", help="directory for all that the demo makes")
    parser.add_argument("--seed", type=int, default=1, help="seed of every step")
    parser.add_argument("--steps", type=int, default=None, help="training steps; chosen for two cores when not given")


COMMANDS: dict[str, Command] = {
    "vocab": Command("learn a WordPiece vocabulary, or extend one", options_of(VocabConfig, ["inputs"]), _vocab),
    "prepare": Command("turn text into pretraining examples", _prepare_options, _prepare),
    "pretrain": Command("pretrain BERT on prepared data", _pretrain_options, _pretrain),
    "evaluate": Command("measure a model on held-out data", options_of(EvaluateConfig, ["model"]), _evaluate),
    "finetune": Command("fine-tune a model for a task on labelled data", options_of(FinetuneConfig), _finetune),
    "predict": Command("let a model answer texts, row by row", options_of(PredictConfig, ["model"]), _predict),
    "fill-mask": Command("let a model fill in [MASK]", _fill_mask_options, _fill_mask),
    "convert": Command("write a model in another format, or of another size", _convert_options, _convert),
    "inspect": Command("say what a model, run, data or export is, or draw its attention", _inspect_options, _inspect),
    "export": Command("export a model for TensorFlow Serving", _export_options, _export),
    "serve": Command("serve an export on this machine", _serve_options, _serve),
    "demo": Command("go the whole way once, on real text", _demo_options, _demo),
}

COMMANDS_WITH_CONFIG = ("vocab", "prepare", "pretrain", "evaluate", "finetune", "predict")


def build_parser() -> ArgumentParser:
    """Returns the parser of all subcommands; it opens no room but the settings."""
    parser = Parser(commands=COMMANDS, prog="keras-bert", description=keras_bert_impl.__doc__, allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"keras-bert {keras_bert_impl.__version__}")
    subcommands = parser.add_subcommands(dest="command", required=True)
    for name, command in COMMANDS.items():
        summary = command.summary[0].upper() + command.summary[1:] + "."
        sub = Parser(commands=COMMANDS, description=summary, allow_abbrev=False)
        command.add_options(sub)
        sub.add_argument("--verbose", action="store_true", help="show TensorFlow's own log lines too")
        subcommands.add_subcommand(name, sub, help=command.summary)
    return parser
