"""The front door `keras-bert`: reads the command line, runs one of `commands`, and says mistakes in a sentence.

Options are built from the settings classes by jsonargparse, which also reads `--config` files.
"""

import contextlib
import os
import re
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from typing import Any

from jsonargparse import ArgumentParser, Namespace

import keras_bert_impl
from keras_bert_impl.command_parser import Parser, taken_out
from keras_bert_impl.commands import COMMANDS, WITH_CONFIG
from keras_bert_impl.commands.say import say
from keras_bert_impl.errors import InputError, StoppedBySignal, WorkerLostError
from keras_bert_impl.quiet import silence_logs

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
    if not command or command[0] not in WITH_CONFIG:
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
