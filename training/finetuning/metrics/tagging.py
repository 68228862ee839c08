"""How well words were tagged: spans by the rules of conlleval, as seqeval has them, and words one by one."""

import warnings
from collections.abc import Sequence
from typing import Any

from keras_bert_impl.errors import InputError
from keras_bert_impl.extras import check_extra
from keras_bert_impl.tasks.tag_spans import tag_form, with_marks

Tags = Sequence[Sequence[str]]


def score_tags(right: Tags, given: Tags) -> dict[str, Any]:
    """Scores tags of sentences.

    A span is right if its first and last word and its label are. Where tags mark no spans with B and I, neighbours of
    one type are a span if there is a tag `O`, and else each word is one, so that `f1` is the share of right words.

    Args:
        right: the right tags of each sentence.
        given: those that a model gave.

    Returns:
        `f1`, `precision` and `recall` of all spans, `f1_macro` (the mean over the labels), `accuracy` of the words,
        all from 0 to 1; the numbers of `sentences`, `words`, right `spans` and `spans_given`; `types`: for each label
        `precision`, `recall`, `f1`, the right `spans` and those `given`.

    Raises:
        InputError: if seqeval is not installed or a sentence has not as many tags as the other.
    """
    seqeval = need_seqeval()
    _check(right, given)
    # Lists: of tuples seqeval would compare whole sentences.
    right, given = ([list(tags) for tags in sentences] for sentences in (right, given))
    words = sum(map(len, right))
    accuracy = float(seqeval.accuracy_score(right, given)) if words else 0.0
    form = tag_form({tag for tags in (*right, *given) for tag in tags})
    right, given = ([with_marks(tags, form) for tags in sentences] for sentences in (right, given))
    spans, spans_given = (_spans_by_label(seqeval.get_entities, sentences) for sentences in (right, given))
    metrics: dict[str, Any] = {"f1": 0.0, "precision": 0.0, "recall": 0.0, "f1_macro": 0.0}
    types: dict[str, dict[str, Any]] = {}
    if spans or spans_given:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # A label that was never given has no precision: it counts as 0.
            averages = {
                average: seqeval.precision_recall_fscore_support(right, given, average=average, zero_division=0)
                for average in ("micro", "macro", None)
            }
        for name, place in (("f1", 2), ("precision", 0), ("recall", 1)):
            metrics[name] = float(averages["micro"][place])
        metrics["f1_macro"] = float(averages["macro"][2])
        precision, recall, f1, _ = averages[None]
        for place, label in enumerate(sorted(spans.keys() | spans_given.keys())):  # the order of seqeval
            types[label] = {
                "precision": float(precision[place]),
                "recall": float(recall[place]),
                "f1": float(f1[place]),
                "spans": spans.get(label, 0),
                "given": spans_given.get(label, 0),
            }
    return {
        **metrics,
        "accuracy": accuracy,
        "sentences": len(right),
        "words": words,
        "spans": sum(spans.values()),
        "spans_given": sum(spans_given.values()),
        "types": types,
    }


def _spans_by_label(get_entities: Any, sentences: Tags) -> dict[str, int]:
    counts: dict[str, int] = {}
    for tags in sentences:
        for label, _, _ in get_entities(list(tags)):
            counts[label] = counts.get(label, 0) + 1
    return counts


def _check(right: Tags, given: Tags) -> None:
    lengths, lengths_given = [len(tags) for tags in right], [len(tags) for tags in given]
    if lengths != lengths_given:
        place = next(
            (i for i, pair in enumerate(zip(lengths, lengths_given, strict=False)) if pair[0] != pair[1]), None
        )
        what = (
            f"{len(lengths_given)} sentences for {len(lengths)}"
            if place is None
            else f"{lengths_given[place]} tags for the {lengths[place]} words of sentence {place + 1}"
        )
        raise InputError(f"`given` must have a tag for every word. Received: {what}")


def need_seqeval() -> Any:
    """Returns the module of seqeval that is used here; raises `InputError` if it is not installed."""
    check_extra("`task` tagging", "finetune", ["seqeval"])
    import seqeval.metrics.sequence_labeling

    return seqeval.metrics.sequence_labeling
