"""README.md of an exported version: what the model is, how good, its limits, and how to ask it."""

import importlib.metadata
import json
import platform
import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import keras_bert_impl

from .description import purpose
from .measurements import Measurements

FILE = "README.md"
"""In the version's `assets.extra`."""

# Longer examples are left to signature.json.
_LONGEST_EXAMPLE = 1500
_MOST_LABELS = 30
_SETTINGS = {
    "classification": ("pair",),
    "multilabel": ("pair", "label_threshold"),
    "regression": ("pair",),
    "tagging": ("labelled_pieces",),
    "qa": ("max_question_length", "max_answer_length", "may_have_no_answer", "null_threshold"),
}
_SCRIPTS = {"CJK": "Chinese characters"}


def model_card(
    description: Mapping[str, Any],
    proof: Mapping[str, Any],
    *,
    vocabulary: Sequence[str],
    measured: Measurements | None,
    warm_up_requests: int,
) -> str:
    """Returns the card in Markdown.

    Args:
        description: content of `signature.json`.
        proof: content of `proof.json`.
        vocabulary: the tokens.
        measured: what its training wrote about it, if it did.
        warm_up_requests: how many lie beside it.
    """
    task = description.get("task") or {}
    sections = {
        f"BERT for {purpose(description['kind'], task.get('task'))}": _what_it_is(description),
        "How good it is": _how_good(measured),
        "Limits": _limits(description, vocabulary),
        "How to ask it": _signatures(description["signatures"]),
        "What was checked": _checks(proof, warm_up_requests),
        "Made with": [
            f"Weights: SHA-256 `{description['weights_sha256']}` of the model directory's file of weights (of its "
            "shards one after another, if it has several).",
            "",
            *(f"- {name} {version}" for name, version in _software(proof).items()),
        ],
    }
    lines = []
    for number, (heading, content) in enumerate(sections.items()):
        lines += [f"{'##' if number else '#'} {heading}", "", *content, ""]
    return "\n".join(lines)


def _what_it_is(description: Mapping[str, Any]) -> list[str]:
    config = description["config"]
    lines = [
        f"`{description['architecture']}`: {config['num_hidden_layers']} blocks of {config['hidden_size']} units and "
        f"{config['num_attention_heads']} heads, {description['parameters']:,} parameters.",
    ]
    if labels := description.get("labels"):
        shown = ", ".join(_code(label) for label in labels[:_MOST_LABELS])
        more = f" and {len(labels) - _MOST_LABELS:,} more, in `signature.json`" if len(labels) > _MOST_LABELS else ""
        lines += ["", f"{len(labels):,} {'label' if len(labels) == 1 else 'labels'}: {shown}{more}."]
    if settings := description.get("task"):
        names = ("max_length", *_SETTINGS[settings["task"]])
        given = ", ".join(f"`{name}` {json.dumps(settings[name])}" for name in names if settings[name] is not None)
        if given:
            lines += ["", f"Settings: {given}."]
    return lines


def _how_good(measured: Measurements | None) -> list[str]:
    if measured is None:
        return [
            "Nothing is known here: the model directory has no figures of a training. Measure it on your own texts "
            "before you rely on it."
        ]
    lines = [*measured.made_from, *(f"Warning: {warning}" for warning in measured.warnings)]
    for heading, numbers in measured.tables.items():
        lines += ["", f"{heading} (`{measured.source}`):", "", "| measure | |", "|---|---|"]
        lines += [
            f"| {name} | {format(value, ',' if isinstance(value, int) else '.4g')} |" for name, value in numbers.items()
        ]
    if not measured.tables:
        lines += ["", "No figures were measured. Measure it on your own texts before you rely on it."]
    return lines


def _limits(description: Mapping[str, Any], vocabulary: Sequence[str]) -> list[str]:
    tokenizer = description["tokenizer"]
    lowercase = tokenizer["lowercase"]
    strip_accents = lowercase if tokenizer["strip_accents"] is None else tokenizer["strip_accents"]
    lines = [
        f"- Rows of at most {description['max_length']} tokens, with `{tokenizer['cls_token']}` and "
        f"`{tokenizer['sep_token']}`: {description['truncation']}.",
        "- Upper and lower case are "
        + ("the same to it: texts are lower-cased" if lowercase else "told apart")
        + (", and accents are stripped." if strip_accents else ", and accents are kept."),
        f"- Its {len(vocabulary):,} tokens say which languages it can read. By script: {_scripts(vocabulary)}. A word "
        f"with a character that no token has, or of more than {tokenizer['max_chars_per_word']} characters, is read as "
        f"`{tokenizer['unk_token']}`.",
        "- It answers any text, also of kinds that it has not seen.",
        f"- Of ready ids, {description['padding']}.",
    ]
    if other_ops := description.get("other_ops"):
        lines.append(f"- A server needs these operations of tensorflow-text: {', '.join(other_ops)}.")
    return lines


def _scripts(vocabulary: Sequence[str]) -> str:
    """Returns the shares of scripts among the tokens with letters, the commonest first."""
    counts: Counter[str] = Counter()
    for token in vocabulary:
        letter = next((character for character in token if character.isalpha()), None)
        if letter is not None and not (token.startswith("[") and token.endswith("]")):
            counts[unicodedata.name(letter, "OTHER").partition(" ")[0]] += 1
    shares = [(_SCRIPTS.get(name, name.title()), count / counts.total()) for name, count in counts.most_common()]
    return ", ".join(f"{name} {share:.0%}" for name, share in shares if share >= 0.01) or "no letters"


def _signatures(signatures: Mapping[str, Any]) -> list[str]:
    lines = []
    for name, signature in signatures.items():
        lines += [f"### `{name}`", "", "| | name | dtype | shape |", "|---|---|---|---|"]
        for side in ("inputs", "outputs"):
            lines += [
                f"| {side[:-1]} | `{tensor}` | {spec['dtype']} | {_shape(spec['shape'])} |"
                for tensor, spec in signature[side].items()
            ]
        example = signature["example"]
        [(kind, answer)] = [(key, value) for key, value in example.items() if key != "request"]
        texts = [json.dumps(value, ensure_ascii=False) for value in (example["request"], answer)]
        if sum(map(len, texts)) > _LONGEST_EXAMPLE:
            lines += ["", "An example is in `signature.json`.", ""]
            continue
        heading = "A part of the answer" if kind == "answer_in_part" else "The answer"
        for title, text in (("A request", texts[0]), (heading, texts[1])):
            lines += ["", f"{title}:", "", "```json", text, "```"]
        lines.append("")
    return lines[:-1]


def _shape(shape: Sequence[int]) -> str:
    sizes = ", ".join("any" if size == -1 else str(size) for size in shape)
    return f"({sizes},)" if len(shape) == 1 else f"({sizes})"


def _checks(proof: Mapping[str, Any], warm_up_requests: int) -> list[str]:
    return [
        f"Before it was put in place, a process with TensorFlow {proof['tensorflow']} {_alone(proof)} answered "
        f"{proof['requests']:,} requests about {proof['texts']:,} texts as the Keras model does, to "
        f"{proof['largest_difference']:.1e} of the output's largest value ({proof['bound']:.0e} was allowed): "
        f"`proof.json`. {warm_up_requests:,} of these requests lie beside it for servers to warm up with.",
    ]


def _alone(proof: Mapping[str, Any]) -> str:
    return "and tensorflow-text" if proof.get("other_ops") else "alone"


def _software(proof: Mapping[str, Any]) -> dict[str, str]:
    return {
        "keras-bert-impl": keras_bert_impl.__version__,
        "TensorFlow": proof["tensorflow"],
        "Keras": importlib.metadata.version("keras"),
        "Python": platform.python_version(),
    }


def _code(text: str) -> str:
    """Returns a text as code in Markdown, whatever is in it."""
    text = text if text.isprintable() else json.dumps(text)
    if "`" not in text:
        return f"`{text}`"
    fence = "`" * (max(map(len, re.findall("`+", text))) + 1)
    return f"{fence} {text} {fence}"
