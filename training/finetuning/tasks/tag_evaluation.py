"""How well a model tags words."""

import itertools
from collections import Counter
from collections.abc import Sequence

from keras_bert_impl.errors import InputError
from keras_bert_impl.tasks.examples import TaggedSentence
from keras_bert_impl.tasks.tag_spans import OUTSIDE, tag_form, tag_spans, with_marks
from keras_bert_impl.tasks.tagging import WordTagging

from ...corpus.wording import counted
from ..answers import is_finite, not_finite_note, tagging_answer
from ..data.labels import describe_first
from ..metrics.classification import calibration_error, confusion, reliability
from ..metrics.tagging import score_tags
from ..task import Evaluation
from .warning_text import collapsed, unknown_names

_NAMED_TAGS = 10

Tags = list[list[str]]


def evaluate_tags(tagging: WordTagging, examples: Sequence[TaggedSentence], *, batch_size: int = 32) -> Evaluation:
    """Lets a model tag the words of sentences and compares with their tags, which are IOB2 where they mark spans.

    Tags that the model doesn't know are named in the warnings; those words are tagged like all others, and counted as
    wrong.

    Args:
        tagging: the model.
        examples: one or more sentences with their tags.
        batch_size: rows that are worked on at once.

    Raises:
        InputError: if there are no words.
    """
    right: Tags = [list(example.tags or ()) for example in examples]
    if not any(right):
        raise InputError("`examples` must be one or more tagged sentences. Received: no word with a tag")
    tagged = tagging([example.words for example in examples], batch_size=batch_size)
    right, given, known = _comparable(right, [sentence.tags for sentence in tagged], tagging.model.labels)
    curve = reliability(
        [
            (probability, r == g)
            for sentence, right_tags, given_tags in zip(tagged, right, given, strict=True)
            for probability, r, g in zip(sentence.probabilities, right_tags, given_tags, strict=True)
        ]
    )
    metrics = {
        **score_tags(right, given),
        "calibration_error": calibration_error(curve),
        "sentences_in_windows": sum(sentence.windows > 1 for sentence in tagged),
        "cut_words": sum(sentence.cut_words for sentence in tagged),
    }
    answers = [tagging_answer(sentence) for sentence in tagged]
    not_finite = sum(not is_finite(answer) for answer in answers)
    predictions = [
        {
            **({} if example.id is None else {"id": example.id}),
            **answer,
            "right": right_tags,
            "correct": right_tags == given_tags,
        }
        for example, answer, right_tags, given_tags in zip(examples, answers, right, given, strict=True)
    ]
    all_right, all_given = list(itertools.chain(*right)), list(itertools.chain(*given))
    pictures = {"confusion": confusion(all_right, all_given, known), "reliability": curve}
    odd = _unknown_tags(right, known)
    odd += [not_finite_note(not_finite, "sentence")] if not_finite else _collapse(all_right, all_given)
    return Evaluation(metrics, predictions, odd, pictures)


def _unknown_tags(right: Tags, known: Sequence[str]) -> list[str]:
    unknown = Counter(tag for tags in right for tag in tags if tag not in known)
    if not unknown:
        return []
    total, wrong = sum(map(len, right)), unknown.total()
    named = describe_first(dict(unknown.most_common()), total, _NAMED_TAGS, "tag")
    return [unknown_names("tag", len(unknown), named, "word", wrong, "tagged")]


def _collapse(right: Sequence[str], given: Sequence[str]) -> list[str]:
    if len(set(given)) == 1 < len(set(right)):
        what = f"{given[0]!r} for all {counted(len(given), 'word')}"
        return [collapsed(what, "`class_weights` balanced")]
    return []


def _comparable(
    right: Tags, given: Sequence[Sequence[str]], labels: Sequence[str]
) -> tuple[Tags, Tags, tuple[str, ...]]:
    """Returns the right tags, those that were given, and the model's, all as IOB2 if one of the sides marks spans."""
    form, right_form = tag_form(labels), tag_form({tag for tags in right for tag in tags})
    if "words" not in (form, right_form) and "marks" in (form, right_form):
        if right_form == "types":
            right = [_in_iob2(tags, right_form) for tags in right]
        if form == "types" or not _is_iob2(labels):
            types = dict.fromkeys(tag[2:] or "_" for tag in with_marks(labels, form) if tag != OUTSIDE)
            labels = (OUTSIDE, *(f"{mark}-{label}" for label in types for mark in "BI"))
            given = [_in_iob2(tags, form) for tags in given]
    return right, [list(tags) for tags in given], tuple(labels)


def _is_iob2(labels: Sequence[str]) -> bool:
    """Whether a model marks spans as the examples do: with B and I alone, and every I with its B."""
    return all(tag == OUTSIDE or tag[:1] == "B" or (tag[:1] == "I" and f"B{tag[1:]}" in labels) for tag in labels)


def _in_iob2(tags: Sequence[str], form: str) -> list[str]:
    result = [OUTSIDE] * len(tags)
    for label, start, end in tag_spans(with_marks(tags, form)):
        result[start:end] = [f"B-{label}"] + [f"I-{label}"] * (end - start - 1)
    return result
