import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from pretraining_runs import MODEL, small_config

from keras_bert_impl.errors import InputError
from keras_bert_impl.models.bert_pretrainer import BertPretrainer
from keras_bert_impl.training.configs import EvaluateConfig
from keras_bert_impl.training.evaluate import evaluate
from keras_bert_impl.training.examples.prepared_data import PreparedData
from keras_bert_impl.training.input_pipeline import evaluation_batches
from keras_bert_impl.training.run_directory import RunDirectory, write_json


@pytest.fixture(scope="module")
def model(tmp_path_factory, prepared):
    path = tmp_path_factory.mktemp("model") / "model"
    BertPretrainer.from_preset("tiny", **MODEL, vocab_size=26, seed=3).save_pretrained(
        path, tokenizer=PreparedData(prepared).tokenizer
    )
    return path


@pytest.fixture(scope="module")
def measured(tmp_path_factory, model, prepared):
    output, said = tmp_path_factory.mktemp("out") / "metrics.json", []
    results = evaluate(
        EvaluateConfig(model=str(model), data=str(prepared), output=str(output), batch_size=7), say=said.append
    )
    return results, said, output


def test_losses_are_over_tokens_and_the_unigram_loss_over_the_same(measured, model, prepared):
    data = PreparedData(prepared)
    batches, _ = evaluation_batches(data.examples("held_out", 16), batch_size=64, tokenizer=data.tokenizer)
    network = BertPretrainer.from_pretrained(model)
    counts = data.token_counts + 1.0
    losses, unigram, weights, right, random_next, examples = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for x, y in batches.as_numpy_iterator():
        logits = np.asarray(network(x)["mlm_logits"], "float64")
        log_probabilities = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
        picked = np.take_along_axis(log_probabilities, y["mask_labels"][..., None], -1)[..., 0]
        losses -= (picked * y["mask_weights"]).sum()
        right += ((logits.argmax(-1) == y["mask_labels"]) * y["mask_weights"]).sum()
        unigram -= (np.log(counts / counts.sum())[y["mask_labels"]] * y["mask_weights"]).sum()
        weights += y["mask_weights"].sum()
        random_next += (y["next_sentence_labels"] * y["next_sentence_weights"]).sum()
        examples += y["next_sentence_weights"].sum()
    record = measured[0]["16"]
    assert record["mlm_loss"] == pytest.approx(losses / weights, rel=1e-5)
    assert record["mlm_perplexity"] == pytest.approx(np.exp(losses / weights), rel=1e-4)
    assert record["mlm_accuracy"] == pytest.approx(right / weights)
    assert record["unigram_loss"] == pytest.approx(unigram / weights)
    assert record["nsp_random_next_share"] == pytest.approx(random_next / examples)
    assert record["nsp_true_next_share"] == pytest.approx(1 - random_next / examples)
    assert (record["predicted_tokens"], record["examples"]) == (weights, examples)


def test_masks_are_those_of_the_run_unless_told_otherwise(model, prepared, tmp_path):
    run = RunDirectory(tmp_path / "run")
    shutil.copytree(model, run.model)
    trained = small_config(prepared, run.path, masking="n-gram", max_ngram=2, masked_share=0.25)
    write_json(run.config, trained.to_dict())
    write_json(run.facts, {})

    def measured_at(path, **settings):
        said = []
        config = EvaluateConfig(model=str(path), data=str(prepared), lengths=(16,), examples=20, **settings)
        return evaluate(config, say=said.append)["16"], said[0]

    of_run, told = measured_at(run.path)
    assert told == "Masked: n-grams of up to 2 words, 25% of the positions."
    assert of_run == measured_at(model, masking="n-gram", max_ngram=2, masked_share=0.25)[0]
    of_model, told = measured_at(run.path, masking="token", masked_share=0.15)
    assert told == "Masked: tokens, 15% of the positions."
    assert of_model == measured_at(model)[0] != of_run


def test_results_are_written_and_told(measured):
    results, said, output = measured
    assert json.loads(output.read_text()) == results
    assert results.keys() == {"16", "32"}
    assert said[1].startswith("Held-out, length 16: MLM loss ") and "unigram" in said[1]
    share = max(results["16"]["nsp_true_next_share"], results["16"]["nsp_random_next_share"])
    assert results["16"]["nsp_majority_share"] == share
    true_next, random_next = results["16"]["nsp_true_next_share"], results["16"]["nsp_random_next_share"]
    assert f"(labels: {true_next:.1%} true next, {random_next:.1%} random)" in said[1]


def test_a_run_directory_stands_for_its_model(measured, model, prepared, tmp_path):
    shutil.copytree(model, tmp_path / "run" / "model")
    results = evaluate(EvaluateConfig(model=str(tmp_path / "run"), data=str(prepared), lengths=(16,), batch_size=32))
    assert results.keys() == {"16"}
    assert results["16"] == pytest.approx(measured[0]["16"], rel=1e-5)


def changed_manifest(prepared, tmp_path, change):
    shutil.copytree(prepared, tmp_path / "data")
    path = tmp_path / "data" / "manifest.json"
    manifest = json.loads(path.read_text())
    change(manifest)
    path.write_text(json.dumps(manifest))
    return str(tmp_path / "data")


def test_data_without_held_out_part_is_refused(model, prepared, tmp_path):
    def empty(manifest):
        for facts in manifest["examples"]["held_out"].values():
            facts.update(examples=0, shards=[], packed_rows=0)

    data = changed_manifest(prepared, tmp_path, empty)
    with pytest.raises(InputError, match=r"`data` must have held-out examples to evaluate on.*which has none"):
        evaluate(EvaluateConfig(model=str(model), data=data))


def test_length_that_the_data_lacks_is_refused(model, prepared):
    with pytest.raises(InputError, match=r"`length` must be one that the data.*16, 32\. Received: length=64"):
        evaluate(EvaluateConfig(model=str(model), data=str(prepared), lengths=(64,)))


def test_a_directory_to_write_to_and_a_length_twice_are_refused_before_anything_is_read(tmp_path):
    with pytest.raises(InputError, match=r"`output` must be a file: .* Received: '.*', which is a directory"):
        evaluate(EvaluateConfig(model="none", data="none", output=str(tmp_path)))
    with pytest.raises(InputError, match=r"`lengths` must be different numbers\. Received: lengths=\[16, 32, 16\]"):
        EvaluateConfig(model="none", data="none", lengths=(16, 32, 16))


@pytest.mark.parametrize(
    "changes,message",
    [
        ({"vocab_size": 20}, r"`data` must not have a larger vocabulary than the model\. Received: 26 tokens.*20 in"),
        ({"max_position_embeddings": 31}, r"`max_position_embeddings`, 31\. Received: lengths=\[16, 32\]"),
    ],
    ids=str,
)
def test_model_that_does_not_fit_the_data_is_refused(prepared, tmp_path, changes, message):
    BertPretrainer.from_preset("tiny", **MODEL | {"vocab_size": 26} | changes).save_pretrained(tmp_path / "model")
    with pytest.raises(InputError, match=message):
        evaluate(EvaluateConfig(model=str(tmp_path / "model"), data=str(prepared)))


@pytest.mark.slow
def test_a_token_outside_the_vocabulary_is_a_sentence_though_read_by_tensorflow(model, prepared, tmp_path):
    shutil.copytree(prepared, tmp_path / "data")
    path = tmp_path / "data" / "held_out" / "16" / "00000.tokens.npy"
    np.save(path, np.full_like(np.load(path), 65535))
    with pytest.raises(InputError, match=r"^`data` must be whole; .*00000\.tokens\.npy', which has the token id 65535"):
        evaluate(EvaluateConfig(model=str(model), data=str(tmp_path / "data"), lengths=(16,)))


def test_data_with_another_vocabulary_is_refused(model, prepared, tmp_path):
    shutil.copytree(model, tmp_path / "model")
    vocabulary = tmp_path / "model" / "vocab.txt"
    tokens = vocabulary.read_text().splitlines()
    tokens[8], tokens[9] = tokens[9], tokens[8]
    vocabulary.write_text("".join(f"{token}\n" for token in tokens))
    with pytest.raises(InputError, match=r"`data` must have the vocabulary of the model\. .*differs from token 8 on"):
        evaluate(EvaluateConfig(model=str(tmp_path / "model"), data=str(prepared)))
    vocabulary.write_text("".join(f"{token}\n" for token in [*PreparedData(prepared).tokenizer.vocabulary, "more"]))
    with pytest.raises(InputError, match=r"`data` must have the vocabulary of the model\. .*differs from token 26 on"):
        evaluate(EvaluateConfig(model=str(tmp_path / "model"), data=str(prepared)))


def test_data_with_other_lower_casing_is_refused(model, prepared, tmp_path):
    shutil.copytree(model, tmp_path / "model")
    options = tmp_path / "model" / "tokenizer_config.json"
    options.write_text(json.dumps(json.loads(options.read_text()) | {"do_lower_case": False}))
    message = r"`data` must have the lower-casing of the model\. Received: .*lowercase=False, data=.*lowercase=True"
    with pytest.raises(InputError, match=message):
        evaluate(EvaluateConfig(model=str(tmp_path / "model"), data=str(prepared), lengths=(16,)))
    options.unlink()
    assert evaluate(EvaluateConfig(model=str(tmp_path / "model"), data=str(prepared), lengths=(16,), examples=4))


def test_a_model_of_no_finite_loss_is_refused(model, prepared, tmp_path):
    network = BertPretrainer.from_pretrained(model)
    network.weights[0].assign(np.full(network.weights[0].shape, np.nan, "float32"))
    network.save_pretrained(tmp_path / "model")
    with pytest.raises(InputError, match=r"`model` must give finite losses\. Received: .*nan"):
        evaluate(EvaluateConfig(model=str(tmp_path / "model"), data=str(prepared), lengths=(16,)))


def test_metrics_replace_neither_the_model_nor_the_data(model, prepared):
    for source, place in (("model", Path(model) / "config.json"), ("data", Path(prepared) / "manifest.json")):
        before = place.read_bytes()
        with pytest.raises(InputError, match=rf"`output` must not replace a file of `{source}`\. Received: "):
            evaluate(EvaluateConfig(model=str(model), data=str(prepared), output=str(place)))
        assert place.read_bytes() == before
