"""Files of both real encoders, for every task, on real texts; and what the forms cost a model that was fine-tuned.

`KERAS_BERT_REAL_TEXTS` says on how many texts: 200 of all models take half an hour of two cores. Without it two of the
models are tried, on 36 texts, and nothing is fine-tuned.
"""

import json
import os

import numpy as np
import pytest

pytest.importorskip("ai_edge_litert", reason="needs the extra `tflite`")
pytest.importorskip("ai_edge_quantizer", reason="needs the extra `tflite`")

from real_models import HEADS, MODELS, asked, with_head
from real_texts import real_texts

from keras_bert_impl.serving.tflite import variants
from keras_bert_impl.serving.tflite.export_tflite import export_tflite
from keras_bert_impl.serving.tflite.labelled_texts import LabelledTexts
from keras_bert_impl.serving.tflite.lost_accuracy_error import LostAccuracyError
from keras_bert_impl.tasks import TaskSettings
from keras_bert_impl.tokenization.wordpiece import WordPieceTokenizer
from keras_bert_impl.training.configs import FinetuneConfig
from keras_bert_impl.training.finetuning.finetune import finetune
from keras_bert_impl.training.finetuning.scored_examples import read_scored

COUNT = int(os.environ.get("KERAS_BERT_REAL_TEXTS", "0"))
USUAL = {("tagging", "all-MiniLM-L6-v2"), ("fill-mask", "bert-tiny-splade-mlm")}


@pytest.mark.slow
@pytest.mark.shared
@pytest.mark.parametrize("length", [128, "dynamic"])
@pytest.mark.parametrize("encoder", MODELS)
@pytest.mark.parametrize("name", HEADS)
def test_a_file_answers_real_texts_as_keras_does(name, encoder, length, shared, tmp_path):
    if not COUNT and (name, encoder) not in USUAL:
        pytest.skip("takes long; set KERAS_BERT_REAL_TEXTS=200")
    source = with_head(name, shared / "models" / encoder, tmp_path / "model")
    texts = asked(name, real_texts(shared, COUNT or 36))
    if name == "tagging":
        texts = [(text.split(),) for (text,) in texts]
    report = export_tflite(source, tmp_path / "out", quantize="none", length=length, calibration=texts, max_drop=100)
    [variant] = report.variants
    found = variant.agreement
    print(json.dumps({f"{encoder} {name} {length}": [found.largest, found.scale, found.share]}))
    assert found.largest <= 1e-4 and found.texts == len(texts)
    # What is cut off is answered otherwise; a fresh head may leave two labels closer than the difference.
    assert found.share > 0.99 or found.truncated > found.truncated_before
    assert length != "dynamic" or found.truncated == found.truncated_before
    assert not variant.operators.custom


@pytest.fixture(scope="module")
def sentiment(shared, tmp_path_factory):
    """all-MiniLM-L6-v2 fine-tuned on 3,000 rows of SST-2, with all dev rows."""
    if not COUNT:
        pytest.skip("takes long; set KERAS_BERT_REAL_TEXTS=200")
    folder, glue = tmp_path_factory.mktemp("sentiment"), shared / "data" / "glue" / "SST-2"
    lines = (glue / "train_part1.tsv").read_text(encoding="utf-8").splitlines(keepends=True)
    (folder / "train.tsv").write_text("".join(lines[:3001]), encoding="utf-8")
    return fine_tuned("classification", folder / "train.tsv", glue / "dev.tsv", shared, folder, 1e-4)


@pytest.fixture(scope="module")
def entities(shared, tmp_path_factory):
    """all-MiniLM-L6-v2 fine-tuned on wnut17, with all dev sentences."""
    if not COUNT:
        pytest.skip("takes long; set KERAS_BERT_REAL_TEXTS=200")
    wnut = shared / "data" / "ner" / "wnut17"
    folder = tmp_path_factory.mktemp("entities")
    return fine_tuned("tagging", wnut / "train.conll", wnut / "dev.conll", shared, folder, 2e-4)


def fine_tuned(task, train, dev, shared, folder, learning_rate):
    config = FinetuneConfig(
        task=task,
        model=str(shared / "models" / "all-MiniLM-L6-v2"),
        train=(str(train),),
        dev=(str(dev),),
        output=str(folder / "model"),
        learning_rate=learning_rate,
    )
    finetune(config, say=print)
    settings, tokenizer = TaskSettings.load(folder / "model"), WordPieceTokenizer.from_pretrained(folder / "model")
    scored = read_scored(str(dev), "model", settings, tokenizer, {}, print)
    return folder / "model", LabelledTexts(scored.texts, scored.metric, scored.score, "the dev set")


ALLOWED = {"float16": (0.2, 0.51), "dynamic": (0.5, 0.27), "int8": (1.0, 0.27)}
"""Points that a form may cost, and its largest size beside float32."""


@pytest.mark.slow
@pytest.mark.shared
@pytest.mark.parametrize("form", ALLOWED)
@pytest.mark.parametrize("model", ["sentiment", "entities"])
def test_a_form_costs_little_of_the_metric(model, form, tmp_path, request):
    source, labelled = request.getfixturevalue(model)
    points, size = ALLOWED[form]
    report = export_tflite(
        source, tmp_path / "out", quantize=form, labelled=labelled, calibration=labelled.texts, max_drop=100
    )
    float32, made = report.variants
    print(*report.table(), sep="\n")
    assert made.metric.before - made.metric.after <= points
    assert made.bytes / float32.bytes <= size


@pytest.mark.slow
@pytest.mark.shared
def test_int8_of_everything_by_noise_is_refused_with_the_table(sentiment, tmp_path, monkeypatch):
    source, labelled = sentiment
    random = np.random.default_rng(1)

    def noise(self, texts):
        ids = random.integers(1000, 30000, (20, 1, 128)).astype("int32")
        return [{"token_ids": row, "segment_ids": 0 * row, "padding_mask": 0 * row + 1} for row in ids]

    monkeypatch.setattr(variants.Variants, "calibration_rows", noise)
    with pytest.raises(LostAccuracyError, match="points of accuracy") as caught:
        export_tflite(
            source,
            tmp_path / "out",
            quantize="int8",
            labelled=labelled,
            calibration=labelled.texts,
            keep_float=(),
            per_tensor=True,
        )
    assert [path.name for path in tmp_path.iterdir()] == ["out.refused"]
    assert "\n".join(caught.value.report.table()) in str(caught.value)
