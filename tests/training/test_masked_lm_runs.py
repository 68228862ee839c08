"""Runs on data without next-sentence labels: masked language modelling alone."""

import dataclasses
import json

import numpy as np
import pytest
from pretraining_runs import MODEL, lines_of, small_config

from keras_bert_impl.config import BertConfig
from keras_bert_impl.errors import InputError
from keras_bert_impl.models.bert_masked_lm import BertMaskedLM
from keras_bert_impl.models.bert_pretrainer import BertPretrainer
from keras_bert_impl.training.configs import EvaluateConfig, PhaseConfig, PrepareConfig
from keras_bert_impl.training.evaluate import evaluate
from keras_bert_impl.training.model_choice import make_model
from keras_bert_impl.training.prepare import prepare
from keras_bert_impl.training.pretrain import pretrain
from keras_bert_impl.training.pretraining_data import open_data

ONE_PHASE = (PhaseConfig(length=16, share=1),)


@pytest.fixture(scope="module")
def chunks(prepared, corpus_vocabulary, tmp_path_factory):
    """The corpus of `prepared` as chunks."""
    inputs = json.loads((prepared / "manifest.json").read_text())["settings"]["inputs"]
    data = tmp_path_factory.mktemp("chunks") / "data"
    config = PrepareConfig(
        inputs=tuple(inputs),
        vocab=str(corpus_vocabulary),
        output=str(data),
        lengths=(16,),
        examples="chunks",
        held_out_share=0.2,
        workers=1,
    )
    prepare(config)
    return data


@pytest.fixture(scope="module")
def init(chunks, tmp_path_factory):
    """A model with both heads."""
    tokenizer = open_data(chunks).tokenizer
    directory = tmp_path_factory.mktemp("init") / "model"
    BertPretrainer(BertConfig(vocab_size=tokenizer.vocab_size, **MODEL), seed=3).save_pretrained(directory, tokenizer)
    return directory


def configured(chunks, run, **changes):
    return small_config(chunks, run, **{"phases": ONE_PHASE, "steps": 4, **changes})


@pytest.mark.slow
def test_a_fresh_run_leaves_a_masked_lm_model_and_no_next_sentence_figures(chunks, prepared, tmp_path):
    said = []
    metrics = pretrain(configured(chunks, tmp_path / "run"), say=said.append)
    assert json.loads((tmp_path / "run" / "model" / "config.json").read_text())["architectures"] == ["BertForMaskedLM"]
    figures = [*metrics["held_out"]["16"], *(name for line in lines_of(tmp_path / "run") for name in line)]
    assert not [name for name in figures if "nsp" in name]
    assert "no next-sentence labels" in said[-3], said

    # On pairs it is measured at what it can do.
    lines = []
    config = EvaluateConfig(model=str(tmp_path / "run"), data=str(prepared), lengths=(16,))
    record = evaluate(config, say=lines.append)["16"]
    assert record["mlm_loss"] > 0 and "nsp_loss" not in record
    assert "no next-sentence head in the model" in lines[1]


@pytest.mark.slow
def test_pooler_and_next_sentence_head_of_the_first_model_stay_as_they_are(chunks, init, tmp_path):
    config = configured(chunks, tmp_path / "run", model=None, init=str(init), weight_decay=0.1)
    pretrain(config)
    before, after = (BertPretrainer.from_pretrained(path) for path in (init, tmp_path / "run" / "model"))
    changed = {
        old.path
        for old, new in zip(before.weights, after.weights, strict=True)
        if not np.array_equal(old.numpy(), new.numpy())
    }
    kept = {variable.path for variable in (*before.encoder.pooler.weights, *before.nsp_head.weights)}
    assert changed and not changed & kept
    assert {variable.path for variable in before.weights} - changed - kept <= {
        # The key's bias has no gradient, being the same for all keys.
        variable.path
        for variable in before.weights
        if "/key/" in variable.path
    }


def test_the_class_follows_from_data_and_first_model(chunks, prepared, init, tmp_path):
    pairs, without = open_data(prepared), open_data(chunks)
    size = BertConfig(vocab_size=without.tokenizer.vocab_size, **MODEL)
    fresh, later = configured(chunks, "run"), configured(chunks, "run", model=None, init=str(init))
    assert type(make_model(fresh, size, pairs)) is BertPretrainer
    assert type(make_model(fresh, size, without)) is BertMaskedLM
    both = make_model(later, size, without)
    assert type(both) is BertPretrainer
    assert len(both.weights) - len(both.trainable_weights) == 4
    assert len(make_model(later, size, pairs).trainable_weights) == len(both.weights)

    encoder_and_head = tmp_path / "masked_lm"
    BertMaskedLM(size).save_pretrained(encoder_and_head, without.tokenizer)
    from_head = configured(chunks, "run", model=None, init=str(encoder_and_head))
    assert type(make_model(from_head, size, without)) is BertMaskedLM


def test_parts_that_the_first_model_lacks_must_be_allowed_to_start_fresh(chunks, prepared, tmp_path):
    pairs, tokenizer = open_data(prepared), open_data(chunks).tokenizer
    size = BertConfig(vocab_size=tokenizer.vocab_size, **MODEL)
    BertMaskedLM(size).save_pretrained(tmp_path / "init", tokenizer)
    config = configured(chunks, "run", model=None, init=str(tmp_path / "init"))
    with pytest.raises(InputError, match=r"`allow_missing=\('nsp_head', 'pooler'\)` starts with fresh ones"):
        make_model(config, size, pairs)
    config = dataclasses.replace(config, allow_missing=("nsp_head", "pooler"))
    with pytest.warns(UserWarning, match="(nsp_head, pooler|pooler, nsp_head) start with fresh weights"):
        assert type(make_model(config, size, pairs)) is BertPretrainer
