"""The parser behind the front door: options from settings classes, and mistakes said in one sentence."""

import dataclasses
import re
import typing
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn

from jsonargparse import ActionConfigFile, ActionYesNo, ArgumentParser, Namespace

from keras_bert_impl.errors import InputError, nearest
from keras_bert_impl.settings_text import MODE as SETTINGS_MODE

# Values of JSON as they are: for `Any` the library turns text such as "8" into the number.
_Value = str | bool | int | float | list | dict | None


class Parser(ArgumentParser):
    """Says what is wrong in one sentence instead of printing the usage."""

    def __init__(self, *arguments: Any, commands: Iterable[str] = (), **options: Any) -> None:
        super().__init__(*arguments, parser_mode=SETTINGS_MODE, **options)
        self.commands = tuple(commands)

    def error(self, message: str, ex: Exception | None = None) -> NoReturn:
        """Raises `InputError` with what is wrong."""
        sentence = _one_sentence(message, self.commands)
        if re.search(r"is not a setting|not expected|unrecognized arguments", sentence):
            subcommand = re.search(r"is not a setting of `([\w-]+)`", sentence)
            parser = _subparsers(self)[subcommand[1]] if subcommand else self
            known = _settings_of(parser)
            sentence += _meant(sentence, known, parser, in_file=subcommand is not None)
            sentence += f" Known settings: {', '.join(known)}." if known else ""
        raise InputError(sentence)


def _meant(sentence: str, known: Sequence[str], parser: ArgumentParser, *, in_file: bool) -> str:
    """Asks for the nearest known settings, spelled as in a file or as options."""
    if in_file:
        return _asked(f"`{name}`" for name in nearest(re.findall(r"`([\w-]+)` is not a setting", sentence), known))
    options = {action.dest for action in parser._actions if action.option_strings}
    given = [name.replace("-", "_") for name in re.findall(r"--([\w-]+)", sentence)]
    return _asked(f"--{name.replace('_', '-')}" for name in nearest(given, [n for n in known if n in options]))


def _asked(names: Iterable[str]) -> str:
    said = " or ".join(names)
    return f" Did you mean {said}?" if said else ""


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


def _one_sentence(message: str, commands: Sequence[str]) -> str:
    """Joins the library's lines into one and says in our words what only a programmer understands."""
    text = " ".join(message.split())
    text = re.sub(r"""Parser key ["'](\w+)["']( element \d+)?: ?""", r"`\1`\2: ", text)
    text = re.sub(r"Does not validate .* Subtypes: \[(.*?)\] Errors: .* Given value: ", _expected_one_of, text)
    text = re.sub(r"[Ee]xpected an? typing\.Literal\[(.*?)\]", r"must be \1", text)
    text = re.sub(r"[Ee]xpected an? (?:<class ')?(\w+)(?:'>)?", lambda m: f"must be {_KINDS.get(m[1], m[1])}", text)
    text = text.replace("Got value: ", "Received: ")
    text = re.sub(r"Unexpected config:.*", "`config` must be a file that maps settings to values", text)
    text = re.sub(r"Subcommand '([\w-]+)' does not accept option '([\w.-]+)'", r"`\2` is not a setting of `\1`", text)
    if commands:
        text = re.sub(rf"\b(?:{'|'.join(commands)})\.(?=\w)", "", text)
    return text if text.endswith((".", "?", "!")) else text + "."


def _expected_one_of(union: re.Match[str]) -> str:
    kinds = re.findall(r"<class '(\w+)'>|(\w+)\[", union[1])
    return f"must be {' or '.join(_KINDS.get(a or b, a or b) for a, b in kinds)}. Received: "


def options_of(settings: type[Any], positional: Sequence[str] = ()) -> Callable[[ArgumentParser], None]:
    """Returns a function that gives the parser an option for each field, and `--config` for a file of them."""

    def add_options(parser: ArgumentParser) -> None:
        parser.add_argument(
            "--config", action=ActionConfigFile, help="YAML or JSON file of settings; options override it"
        )
        hints = typing.get_type_hints(settings)
        for field in dataclasses.fields(settings):
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
        parser.add_argument(flag, type=list[dict[str, _Value]], default=rows, help=text)
    elif hint == dict[str, Any] | None:
        parser.add_argument(flag, type=dict[str, _Value] | None, default=default, required=required, help=text)
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


def settings_from(cls: type[Any], options: Namespace) -> Any:
    """Builds the settings object from the parsed options."""
    names = [field.name for field in dataclasses.fields(cls)]
    return cls(**{name: options[name] for name in names})


def taken_out(flag: str, words: list[str]) -> tuple[list[str], list[str]]:
    """Returns every `FLAG VALUE` and `FLAG=VALUE` of the words, and the other words; `--` ends the options."""
    taken: list[str] = []
    others: list[str] = []
    place = 0
    while place < len(words) and words[place] != "--":
        word = words[place]
        if word == flag and place + 1 < len(words):
            taken += words[place : place + 2]
            place += 1
        else:
            (taken if word.startswith(f"{flag}=") else others).append(word)
        place += 1
    return taken, [*others, *words[place:]]
