"""Records of ours under the Model Garden's loader and pretrainer, and records of its writer under ours."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest
from records import LENGTH, PREDICTIONS, VOCAB_SIZE, random_rows
from toy_data import toy_config

from keras_bert_impl.tokenization.wordpiece import WordPieceTokenizer
from keras_bert_impl.training.examples.masking import mask_batch, max_predictions
from keras_bert_impl.training.examples.prepared_data import PreparedData
from keras_bert_impl.training.examples.reference_instances import ReferenceSettings, instances_of_lines
from keras_bert_impl.training.examples.tfrecord import TFRecordExamples
from keras_bert_impl.training.examples.tfrecord_writing import rows_of_instances, static_rows, write_tfrecords
from keras_bert_impl.training.prepare import prepare

pytest.importorskip("official", reason="needs the Model Garden: the extra `garden`")
pytestmark = pytest.mark.slow

NAMES = {
    "input_word_ids": "token_ids",
    "input_mask": "padding_mask",
    "input_type_ids": "segment_ids",
    "masked_lm_positions": "mask_positions",
    "masked_lm_ids": "mask_labels",
    "masked_lm_weights": "mask_weights",
}


def loader_config(path: Path, *, length: int, predictions: int, batch_size: int):
    from official.nlp.data.pretrain_dataloader import BertPretrainDataConfig

    return BertPretrainDataConfig(
        input_path=str(path),
        seq_length=length,
        max_predictions_per_seq=predictions,
        global_batch_size=batch_size,
        is_training=False,
        drop_remainder=False,
    )


def loaded(config):
    from official.nlp.data.pretrain_dataloader import BertPretrainDataLoader

    return BertPretrainDataLoader(config).load()


def test_its_loader_finds_the_tensors_that_we_wrote(tmp_path: Path):
    rows = random_rows(23)
    write_tfrecords([rows], [tmp_path / "file"])
    found = list(
        loaded(
            loader_config(tmp_path / "file", length=LENGTH, predictions=PREDICTIONS, batch_size=5)
        ).as_numpy_iterator()
    )
    assert [len(batch["input_mask"]) for batch in found] == [5, 5, 5, 5, 3]
    for theirs, ours in NAMES.items():
        values = np.concatenate([batch[theirs] for batch in found])
        assert np.array_equal(values, rows[ours]) and values.dtype == rows[ours].dtype, theirs
    labels = np.concatenate([batch["next_sentence_labels"] for batch in found])
    assert labels[:, 0].tolist() == rows["next_sentence_labels"].tolist()


@pytest.mark.parametrize("made", ["by reference", "from prepared data"])
def test_its_pretrainer_trains_on_our_records(tmp_path: Path, made: str):
    import tf_keras
    from official.nlp.configs import bert, encoders
    from official.nlp.tasks.masked_lm import MaskedLMConfig, MaskedLMTask

    prepare(toy_config(tmp_path, count=40, lengths=(32,)))
    data = PreparedData(tmp_path / "data")
    tokenizer, path = data.tokenizer, tmp_path / "file.tfrecord"
    if made == "by reference":
        settings = ReferenceSettings(length=32, max_predictions=5, dupe_factor=1)
        lines = (tmp_path / "corpus.txt").read_text(encoding="utf-8").split("\n")
        batches = rows_of_instances(instances_of_lines(lines, tokenizer, settings), settings)
    else:
        mask = partial(
            mask_batch,
            vocab_size=tokenizer.vocab_size,
            special_token_ids=tokenizer.special_token_ids,
            mask_token_id=tokenizer.mask_token_id,
            max_predictions=max_predictions(32, 0.15),
            masked_share=0.15,
            seed=1,
        )
        batches = static_rows(data.examples("train", 32), mask, seed=1, epochs=[0])
    assert write_tfrecords(batches, [path]) >= 16

    encoder = encoders.BertEncoderConfig(
        vocab_size=tokenizer.vocab_size,
        hidden_size=16,
        num_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=32,
        type_vocab_size=2,
    )
    records = loader_config(path, length=32, predictions=5, batch_size=8)
    task = MaskedLMTask(
        MaskedLMConfig(
            model=bert.PretrainerConfig(
                encoder=encoders.EncoderConfig(type="bert", bert=encoder),
                cls_heads=[bert.ClsHeadConfig(inner_dim=16, num_classes=2, name="next_sentence")],
            ),
            train_data=records,
        )
    )
    tf_keras.utils.set_random_seed(1)  # its initial values come from a global generator
    model, metrics = task.build_model(), task.build_metrics()
    optimizer = tf_keras.optimizers.Adam(1e-2)
    batches = list(task.build_inputs(records).take(2))
    losses = [float(task.train_step(batch, model, optimizer, metrics)["loss"]) for batch in batches * 5]
    assert losses[0] == pytest.approx(np.log(tokenizer.vocab_size) + np.log(2), abs=0.5)
    assert losses[-1] < losses[0] - 0.2


@pytest.mark.parametrize("use_v2_feature_names", [False, True])
def test_records_of_its_writer_are_read_as_the_instances_they_were(tmp_path: Path, use_v2_feature_names: bool):
    from official.nlp.data import create_pretraining_data

    tokenizer = WordPieceTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefgh"])

    class Stub:
        def convert_tokens_to_ids(self, tokens: list[str]) -> list[int]:
            return [tokenizer.token_to_id(token) for token in tokens]

    settings = ReferenceSettings(length=10, max_predictions=2, dupe_factor=7)
    made = instances_of_lines(["a b c d", "c d", "", "e f", "g h a", "d d d"], tokenizer, settings)
    theirs = [
        create_pretraining_data.TrainingInstance(
            tokens=[tokenizer.id_to_token(token_id) for token_id in row.token_ids],
            segment_ids=row.segment_ids,
            masked_lm_positions=row.mask_positions,
            masked_lm_labels=[tokenizer.id_to_token(token_id) for token_id in row.mask_labels],
            is_random_next=row.next_sentence_label == 1,
        )
        for row in made
    ]
    path = tmp_path / "file.tfrecord"
    create_pretraining_data.logging.set_verbosity("error")
    create_pretraining_data.write_instance_to_example_files(
        theirs, Stub(), 10, 2, [str(path)], gzip_compress=False, use_v2_feature_names=use_v2_feature_names
    )
    examples = TFRecordExamples([path], vocab_size=VOCAB_SIZE)
    found = examples.rows(np.arange(len(examples)))
    (expected,) = rows_of_instances(made, settings)
    for name, values in expected.items():
        assert np.array_equal(found[name], values), name
