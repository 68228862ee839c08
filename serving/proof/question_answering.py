"""Comparison of answers to questions."""

import dataclasses
from typing import Any

import numpy as np

from keras_bert_impl.tasks.answer_spans import ScoredAnswer, chosen_answer, found_answers
from keras_bert_impl.tasks.answer_windows import CutQuestion
from keras_bert_impl.tasks.rows import TextRow

from ..loaded_model import LoadedQuestionAnswerer
from .comparison import Comparison, Outputs, decoded, difference, exactly
from .example_texts import QUESTIONS


@dataclasses.dataclass(frozen=True)
class _Row(TextRow):
    cut: Any = None


class QuestionAnsweringComparison(Comparison):
    """The answers that are in the first window of their text."""

    loaded: LoadedQuestionAnswerer

    def example_texts(self) -> list[tuple[str, ...]]:
        """Returns questions with their texts."""
        return list(QUESTIONS)

    def row(self, *texts: str) -> _Row:
        """Returns the first window of a question."""
        question, context = texts
        cut = self.loaded.cutter(question, context)
        # In the first window alone, every answer that it has is looked for.
        window = cut.windows[0]._replace(least_ends=np.arange(cut.windows[0].end, dtype=np.int32))
        return _Row(
            window.token_ids.tolist(),
            window.segment_ids.tolist(),
            cut.truncated or len(cut.windows) > 1,
            dataclasses.replace(cut, windows=(window,)),
        )

    def outputs(self, inputs: dict[str, np.ndarray]) -> dict[str, Any]:
        """Returns the logits."""
        return self.loaded.model(inputs, training=False)

    def text_differences(self, answer: Outputs, row: _Row, outputs: Outputs) -> dict[str, float]:
        """Compares answers; either of two is right where their scores are closer than the bound."""
        settings: Any = self.loaded.settings
        cut: CutQuestion = row.cut
        found, null_score = found_answers(cut, [outputs], settings.max_answer_length)
        given, entries = chosen_answer(
            found,
            null_score,
            may_have_no_answer=settings.may_have_no_answer,
            null_threshold=settings.null_threshold,
        )
        start, end = int(answer["start"]), int(answer["end"])
        score = self._score(cut, outputs, start, end) if end else null_score
        differences = {
            "answer": exactly(decoded(answer["answer"]).item() == cut.context[start:end]),
            "no_answer": exactly((end == 0) == (given.text == "")),
            "start_and_end": difference(score, given.score),
            "score": difference(answer["score"], score),
            "probability": difference(answer["probability"], given.probability),
        }
        if settings.may_have_no_answer:
            differences |= self._of_best(answer, cut, outputs, [one for one in entries if one.text])
            differences["null_score"] = difference(answer["null_score"], null_score)
            differences["null_threshold"] = exactly(answer["null_threshold"] == np.float32(settings.null_threshold))
        return differences

    def _of_best(
        self, answer: Outputs, cut: CutQuestion, outputs: Outputs, found: list[ScoredAnswer]
    ) -> dict[str, float]:
        """Compares what is said of the best answer, given or not."""
        start, end = int(answer["best_start"]), int(answer["best_end"])
        if not found:
            given = [float(answer[f"best_{name}"]) for name in ("start", "end", "score", "probability")]
            return {"best_start_and_end": exactly(not any(given))}
        score = self._score(cut, outputs, start, end)
        return {
            "best_start_and_end": difference(score, found[0].score),
            "best_score": difference(answer["best_score"], score),
            "best_probability": difference(answer["best_probability"], found[0].probability),
        }

    def id_differences(self, answer: Outputs, row: _Row, outputs: Outputs) -> dict[str, float]:
        """Compares the logits at tokens."""
        return {name: difference(answer[name][: len(row.token_ids)], outputs[name]) for name in outputs}

    def derived_scales(self, scales: dict[str, float], outputs: list[Outputs]) -> dict[str, float]:
        """A softmax makes a difference of logits as much larger as the logits are."""
        logit = max(scales.values())
        return {
            "start_and_end": logit,
            "score": 2 * logit,
            "best_start_and_end": logit,
            "best_score": 2 * logit,
            "best_probability": max(1.0, 2 * logit),
            "null_score": 2 * logit,
            "probability": max(1.0, 2 * logit),
        }

    @staticmethod
    def _score(cut: CutQuestion, outputs: Outputs, start: int, end: int) -> float:
        """The best score of pieces that hold just these characters; minus infinity if there are none."""
        [window] = cut.windows
        pieces = range(window.begin, window.end)
        return max(
            (
                float(outputs["start_logits"][window.place + first]) + float(outputs["end_logits"][window.place + last])
                for first in pieces
                if cut.starts[first] == start
                for last in pieces[first:]
                if cut.ends[last] == end
            ),
            default=-np.inf,
        )
