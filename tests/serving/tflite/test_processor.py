"""Around any graph that computes what the model does, the processor's answers are the Keras model's."""

import keras
import numpy as np
import pytest

from keras_bert_impl.errors import InputError
from keras_bert_impl.serving.fill_mask import FillMask
from keras_bert_impl.serving.tflite.contents import Contents
from keras_bert_impl.serving.tflite.processor import processor, row_inputs
from keras_bert_impl.tasks import QuestionAnswering, SentenceEmbedding, TextClassification, WordTagging

TEXTS = ["a good film", "", "the play was dull, very dull!", "it is a good good good film and i was bad " * 5]
QUESTIONS = ["was it good?", "what", "the film the film the film the film"]
CONTEXTS = ["the film was good.", "", "a play and a book and a song; it was very very nice " * 5]


def keras_outputs(asked):
    """Returns a function that answers as a file's graph would, computed by the Keras model."""
    model = asked.loaded.model if isinstance(asked, FillMask) else asked.model

    def run(inputs):
        assert set(inputs) >= {"token_ids", "segment_ids", "padding_mask"}
        assert {array.dtype for array in inputs.values()} == {np.dtype("int32")}
        given = dict(inputs)
        if isinstance(asked, FillMask):
            [places] = np.nonzero(inputs["token_ids"][0] == asked.tokenizer.mask_token_id)
            given["mask_positions"] = places.astype("int32")[None]
        outputs = model(given, training=False)
        if not isinstance(outputs, dict):
            regression = getattr(asked, "settings", None) is not None and asked.settings.task == "regression"
            outputs = {"value": outputs[:, 0]} if regression else {"logits": outputs}
        return {name: keras.ops.convert_to_numpy(value) for name, value in outputs.items()}

    return run


def contents_of(asked, kind, length):
    loaded = getattr(asked, "loaded", asked)
    config = loaded.model.config
    outputs = {"sequence_output": {}, "pooled_output": {}} if kind in ("embedding", "fill-mask") else {}
    return Contents(
        kind=kind,
        tokenizer=loaded.tokenizer,
        config=config,
        settings=None if outputs else asked.settings,
        labels=tuple(getattr(loaded.model, "labels", ())),
        max_length=min(loaded.max_length, length or config.max_position_embeddings),
        length=length,
        quantization="none",
        signatures={"token_ids": {"inputs": {}, "outputs": outputs}},
    )


def close(answer, expected):
    if hasattr(expected, "__dataclass_fields__"):
        for name in expected.__dataclass_fields__:
            close(getattr(answer, name), getattr(expected, name))
    elif isinstance(expected, dict):
        assert answer.keys() == expected.keys()
        for name in expected:
            close(answer[name], expected[name])
    elif isinstance(expected, list | tuple):
        assert len(answer) == len(expected)
        for one, other in zip(answer, expected, strict=True):
            close(one, other)
    elif isinstance(expected, float | np.ndarray):
        np.testing.assert_allclose(answer, expected, rtol=1e-4, atol=1e-5)
    else:
        assert answer == expected


@pytest.mark.parametrize("length", [40, 33, None])
@pytest.mark.parametrize("name", ["classification", "multilabel", "regression"])
def test_texts_have_the_labels_of_the_keras_model(name, length, model_dirs):
    asked = TextClassification(model_dirs[name])
    pairs = [*TEXTS[1:], TEXTS[0]] if name == "classification" else None
    answers = processor(contents_of(asked, "classification", length), keras_outputs(asked))
    expected = TextClassification(model_dirs[name], max_length=min(asked.max_length, length or 40))
    close(answers(TEXTS, pairs), expected(TEXTS, pairs))
    close(answers(TEXTS, pairs, long_texts="windows"), expected(TEXTS, pairs, long_texts="windows"))


@pytest.mark.parametrize("length", [40, None])
def test_words_have_the_tags_of_the_keras_model(length, model_dirs):
    asked = WordTagging(model_dirs["tagging"])
    answers = processor(contents_of(asked, "tagging", length), keras_outputs(asked))
    sentences = [*TEXTS, ["i", "was", "", "dull-ish"]]
    close(answers(sentences), asked(sentences))
    assert answers(sentences)[3].windows > 1


@pytest.mark.parametrize("length", [40, None])
def test_questions_have_the_answers_of_the_keras_model(length, model_dirs):
    asked = QuestionAnswering(model_dirs["qa"])
    answers = processor(contents_of(asked, "question answering", length), keras_outputs(asked))
    close(answers(QUESTIONS, CONTEXTS, 3), asked(QUESTIONS, CONTEXTS, 3))


@pytest.mark.parametrize("pooling", ["mean", "cls", "pooler"])
@pytest.mark.parametrize("length", [40, None])
def test_texts_have_the_vectors_of_the_keras_model(pooling, length, model_dirs):
    asked = SentenceEmbedding(model_dirs["embedding"], pooling)
    graph = SentenceEmbedding(model_dirs["embedding"], "pooler")
    answers = processor(contents_of(graph, "embedding", length), keras_outputs(graph), pooling=pooling)
    close(answers(TEXTS), asked(TEXTS))
    close(answers(TEXTS, long_texts="windows"), asked(TEXTS, long_texts="windows"))


@pytest.mark.parametrize("length", [40, None])
def test_masks_have_the_tokens_of_the_keras_model(length, model_dirs):
    asked = FillMask(model_dirs["fill-mask"])
    answers = processor(contents_of(asked, "fill-mask", length), keras_outputs(asked))
    texts = ["a [MASK] film", "[MASK] and [MASK] and [MASK]", "the [MASK]"]
    close(answers(texts, top=3), asked(texts, top=3))


def test_a_text_longer_than_the_fixed_length_is_cut_off_and_says_so(model_dirs):
    asked = TextClassification(model_dirs["multilabel"])
    answers = processor(contents_of(asked, "classification", 12), keras_outputs(asked))
    assert [one.truncated for one in answers(TEXTS)] == [False, False, False, True]
    # It can be read in windows all the same.
    assert [one.windows for one in answers(TEXTS, long_texts="windows")][:3] == [1, 1, 1]
    assert [one.truncated for one in answers(TEXTS, long_texts="windows")] == [False] * 4


def test_a_text_with_masks_beyond_the_fixed_length_is_refused(model_dirs):
    asked = FillMask(model_dirs["fill-mask"])
    answers = processor(contents_of(asked, "fill-mask", 12), keras_outputs(asked))
    with pytest.raises(InputError, match=r"`texts` must be of at most 10 pieces\. Received: 13 pieces"):
        answers(["the film " * 6 + "[MASK]"])


def test_rows_fill_the_fixed_length_and_few_free_ones(model_dirs):
    asked = TextClassification(model_dirs["multilabel"])
    row = type("Row", (), {"token_ids": [2, 5, 6, 3], "segment_ids": [0, 0, 1, 1]})
    fixed = row_inputs(contents_of(asked, "classification", 12), row)
    assert fixed["token_ids"].tolist() == [[2, 5, 6, 3] + [0] * 8]
    assert fixed["segment_ids"].tolist() == [[0, 0, 1, 1] + [0] * 8]
    assert fixed["padding_mask"].tolist() == [[1] * 4 + [0] * 8]
    assert row_inputs(contents_of(asked, "classification", None), row)["token_ids"].shape == (1, 16)
    row.token_ids = row.segment_ids = [1] * 35
    assert row_inputs(contents_of(asked, "classification", None), row)["token_ids"].shape == (1, 40)


def test_what_a_file_cannot_give_is_said(model_dirs):
    asked = TextClassification(model_dirs["multilabel"])
    file = contents_of(asked, "classification", 12)
    with pytest.raises(
        InputError, match=r"`max_length` must be at most 12, which the file was made for\. Received: max"
    ):
        processor(file, keras_outputs(asked), max_length=13)
    with pytest.raises(InputError, match="`model` must be a file that gives sequence_output for pooling='mean'"):
        processor(file, keras_outputs(asked), pooling="mean")
