"""Comparison of tags."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_bert_impl.tasks.rows import TextRow
from keras_bert_impl.tasks.text_words import TextWord, text_words
from keras_bert_impl.tasks.word_windows import PlacedWord, sentence_rows

from .comparison import Comparison, Outputs, decoded, difference, exactly, softmax


@dataclasses.dataclass(frozen=True)
class _Row(TextRow):
    words: Sequence[TextWord] = ()
    places: Sequence[PlacedWord] = ()


class TaggingComparison(Comparison):
    """The answers of a classifier of tokens: whole words, as many as there is room for in a row."""

    def row(self, *texts: str) -> _Row:
        """Returns the row of the first words of a text."""
        [text] = texts
        tokenizer, room = self.loaded.tokenizer, self.loaded.max_length - 2
        words = text_words(tokenizer, text)
        pieces = [min(max(len(tokenizer.encode_ids(word.text)), 1), room) for word in words]
        fitting = int(np.searchsorted(np.cumsum(pieces), room, side="right"))
        kept = words[:fitting]
        cut = sentence_rows(tokenizer, [word.text for word in kept], room, room)
        truncated = fitting < len(words) or cut.cut_words > 0
        if not cut.rows:
            return _Row([tokenizer.cls_token_id, tokenizer.sep_token_id], [0, 0], truncated)
        [row] = cut.rows
        return _Row(row.row.token_ids, row.row.segment_ids, truncated, kept, row.words)

    def outputs(self, inputs: dict[str, np.ndarray]) -> dict[str, Any]:
        """Returns the logits."""
        return {"logits": self.loaded.model(inputs, training=False)}

    def expected_outputs(self) -> dict[str, list[Outputs]]:
        """Returns the model's outputs; for words they are those for the text that has them."""
        expected = super().expected_outputs()
        return {**expected, "words": expected["serving_default"]}

    def request(self, signature: str, members: Sequence[int]) -> Outputs:
        """Returns the inputs of a signature for some of the texts."""
        if signature != "words":
            return super().request(signature, members)
        words = [[word.text.encode("utf-8") for word in self._all_words[i]] for i in members]
        width = max(map(len, words))
        filled_up = [row + [b""] * (width - len(row)) for row in words]
        return {"words": np.array(filled_up, dtype="S").reshape(len(words), width)}

    def text_differences(self, answer: Outputs, row: _Row, outputs: Outputs) -> dict[str, float]:
        """Compares words and tags; either of two tags is right where their probabilities are closer than the bound."""
        of_pieces = softmax(outputs["logits"])
        settings: Any = self.loaded.settings
        of_words = np.array(
            [
                of_pieces[start : end if settings.labelled_pieces == "all" else start + 1].mean(axis=0)
                for _, start, end in row.places
            ]
        ).reshape(len(row.places), of_pieces.shape[-1])
        count = len(row.places)
        labels = list(self.loaded.model.labels)
        chosen = [labels.index(tag) for tag in decoded(answer["tags"][:count]).tolist()]
        best = of_words.max(axis=-1, initial=0)
        differences = {
            "tags": difference(of_words[np.arange(count), chosen], best),
            "probabilities": difference(answer["probabilities"][:count], best),
            "filled_up": exactly(
                set(answer["tags"][count:].tolist()) <= {b""} and not answer["probabilities"][count:].any()
            ),
        }
        if "words" in answer:
            differences["words"] = exactly(
                decoded(answer["words"])[:count].tolist() == [word.text for word in row.words]
            )
            for name in ("start", "end"):
                places = [getattr(word, name) for word in row.words]
                rest = len(answer[name]) - count
                differences[name] = exactly(answer[name].tolist() == places + [-1] * rest)
        return differences

    def id_differences(self, answer: Outputs, row: _Row, outputs: Outputs) -> dict[str, float]:
        """Compares the logits at tokens."""
        return {
            "labels": exactly(decoded(answer["labels"]).tolist() == list(self.loaded.model.labels)),
            "logits": difference(answer["logits"][: len(row.token_ids)], outputs["logits"]),
        }

    def derived_scales(self, scales: dict[str, float], outputs: list[Outputs]) -> dict[str, float]:
        """A softmax makes a difference of logits as much larger as the logits are."""
        scale = max(1.0, scales["logits"])
        return {"tags": scale, "probabilities": scale}

    @property
    def _all_words(self) -> list[list[TextWord]]:
        return [text_words(self.loaded.tokenizer, text) for (text,) in self.texts]
