"""Training and evaluating on TFRecord files with static masks."""

import functools
import shutil

import numpy as np
import pytest
from pretraining_runs import assert_same_run, small_config
from toy_data import toy_config

from keras_bert_impl.errors import InputError
from keras_bert_impl.training.configs import EvaluateConfig, PhaseConfig
from keras_bert_impl.training.evaluate import evaluate
from keras_bert_impl.training.examples.masking import mask_batch, max_predictions
from keras_bert_impl.training.examples.prepared_data import PreparedData
from keras_bert_impl.training.examples.record_data import RecordData
from keras_bert_impl.training.examples.tfrecord_writing import static_rows, write_tfrecords
from keras_bert_impl.training.prepare import prepare
from keras_bert_impl.training.pretrain import pretrain
from keras_bert_impl.training.pretraining_data import check_masks, open_data


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("records")
    prepare(toy_config(folder, count=60, lengths=(16, 32)))
    data = PreparedData(folder / "data")
    data.tokenizer.save_pretrained(folder / "records")
    for split in ("train", "held_out"):
        for length in data.lengths:
            mask = functools.partial(
                mask_batch,
                vocab_size=data.tokenizer.vocab_size,
                special_token_ids=data.tokenizer.special_token_ids,
                mask_token_id=data.tokenizer.mask_token_id,
                max_predictions=max_predictions(length, 0.15),
                masked_share=0.15,
                seed=1,
            )
            rows = static_rows(data.examples(split, length), mask, seed=1, epochs=range(2))
            write_tfrecords(rows, [folder / "records" / split / str(length) / f"{i}.tfrecord" for i in range(2)])
    return folder


def test_a_directory_of_records_is_known_by_its_layout(folder):
    records, prepared = open_data(folder / "records"), open_data(folder / "data")
    assert (type(records), type(prepared)) == (RecordData, PreparedData)
    assert records.lengths == prepared.lengths == (16, 32)
    assert records.count("train", 16) == 2 * prepared.count("train", 16)
    assert records.tokenizer.vocabulary == prepared.tokenizer.vocabulary
    assert records.token_counts.shape == prepared.token_counts.shape and records.token_counts.sum() > 0


def test_a_run_on_records_learns_resumes_and_is_evaluated(folder, tmp_path):
    whole = pretrain(small_config(folder / "records", tmp_path / "whole"))
    assert whole["steps"] == 12 and whole["held_out"]["16"]["predicted_tokens"] > 0
    assert whole["held_out"]["16"]["unigram_loss"] < np.log(len(open_data(folder / "records").tokenizer.vocabulary))

    class StoppedError(Exception):
        pass

    import keras

    class StopAfter(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            if batch == 6:
                raise StoppedError

    with pytest.raises(StoppedError):
        pretrain(small_config(folder / "records", tmp_path / "stopped"), callbacks=[StopAfter()])
    pretrain(small_config(folder / "records", tmp_path / "stopped"))
    assert_same_run(tmp_path / "whole", tmp_path / "stopped")
    results = evaluate(EvaluateConfig(model=str(tmp_path / "whole"), data=str(folder / "records")))
    assert results["32"]["examples"] == open_data(folder / "records").count("held_out", 32)


def test_a_record_damaged_in_the_middle_is_a_sentence_though_read_by_tensorflow(folder, tmp_path):
    shutil.copytree(folder / "records", tmp_path / "records")
    for path in (tmp_path / "records" / "train" / "16").iterdir():
        content = bytearray(path.read_bytes())
        for place in range(200, len(content), 150):
            content[place] ^= 255
        path.write_bytes(content)
    with pytest.raises(InputError, match=r"records/train/16/\d.tfrecord"):
        pretrain(small_config(tmp_path / "records", tmp_path / "run"))


@pytest.mark.slow
def test_a_token_outside_the_vocabulary_is_a_sentence_though_read_by_tensorflow(folder, tmp_path):
    shutil.copytree(folder / "data", tmp_path / "data")
    path = tmp_path / "data" / "train" / "16" / "00000.tokens.npy"
    np.save(path, np.full_like(np.load(path), 65535))
    with pytest.raises(InputError, match=r"^`data` must be whole; .*00000\.tokens\.npy', which has the token id 65535"):
        pretrain(small_config(tmp_path / "data", tmp_path / "run"))


@pytest.mark.slow
def test_records_that_changed_are_another_run(folder, tmp_path):
    shutil.copytree(folder / "records", tmp_path / "records")
    pretrain(small_config(tmp_path / "records", tmp_path / "run"))
    (tmp_path / "records" / "train" / "16" / "1.tfrecord").unlink()
    with pytest.raises(InputError, match="`data` has changed since the run began"):
        pretrain(small_config(tmp_path / "records", tmp_path / "run"))


def test_records_have_their_masks_already(folder, tmp_path):
    message = r"`masking` must be left as it is for TFRecord files, .* Received: masking='n-gram', data='.*records'"
    with pytest.raises(InputError, match=message):
        pretrain(small_config(folder / "records", tmp_path / "run", masking="n-gram"))
    assert not (tmp_path / "run").exists()
    with pytest.raises(InputError, match=r"`masked_share` must be left as it is .* Received: masked_share=0.3"):
        check_masks("token", 0.3, open_data(folder / "records"))
    check_masks("token", 0.15, open_data(folder / "records"))
    check_masks("n-gram", 0.3, open_data(folder / "data"))


def test_records_cannot_be_packed(folder, tmp_path):
    phases = (PhaseConfig(length=16, share=1, packed=True),)
    with pytest.raises(
        InputError, match=r"`phases` must not be packed for TFRecord files.*packed=True, data='.*records'"
    ):
        pretrain(small_config(folder / "records", tmp_path / "run", phases=phases))
    assert not (tmp_path / "run").exists()


def test_folders_and_lengths_must_fit(folder, tmp_path):
    shutil.copytree(folder / "records", tmp_path / "records")
    (tmp_path / "records" / "train" / "32").rename(tmp_path / "records" / "train" / "64")
    data = open_data(tmp_path / "records")
    with pytest.raises(InputError, match=r"records of the length that their folder is named by. .*with records of"):
        data.examples("train", 64)
    with pytest.raises(InputError, match=r"`data` must have held-out examples of length 64. Received: .*has none"):
        data.examples("held_out", 64)
    (tmp_path / "records" / "train" / "64").rename(tmp_path / "records" / "train" / "long")
    with pytest.raises(InputError, match=r"in folders that are named by their length. Received: .*with train/long"):
        open_data(tmp_path / "records")
