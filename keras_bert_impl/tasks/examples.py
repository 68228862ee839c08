"""What models are fine-tuned on and asked about, as plain data."""

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True)
class TextExample:
    """A text, or a pair of texts.

    Attributes:
        text: the text.
        text_pair: the second text of a pair.
        label: its label; the labels that hold, of several that may; a number for regression; None if not known.
        id: what the user calls it.
        place: where it was read, such as `"train.tsv:17"`, for messages.
    """

    text: str
    text_pair: str | None = None
    label: str | tuple[str, ...] | float | None = None
    id: str | None = None
    place: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class TaggedSentence:
    """A sentence in words.

    Attributes:
        words: the words.
        tags: one for each word, in the IOB2 form where they mark spans; None if not known.
        id: what the user calls it.
        place: where it was read, for messages.
    """

    words: tuple[str, ...]
    tags: tuple[str, ...] | None = None
    id: str | None = None
    place: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Answer:
    """An answer to a question: `context[start : start + len(text)] == text`; the start is -1 if it is not in there."""

    text: str
    start: int


@dataclasses.dataclass(frozen=True, slots=True)
class Question:
    """A question about a text.

    Attributes:
        question: the question.
        context: the text that holds the answer.
        answers: those that count as right; none if `impossible`, or if they are not known.
        impossible: whether the context does not hold the answer.
        id: what the user calls it.
        place: where it was read, for messages.
    """

    question: str
    context: str
    answers: tuple[Answer, ...] = ()
    impossible: bool = False
    id: str | None = None
    place: str = ""
