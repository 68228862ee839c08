"""Packed rows of real short documents: how full they are, how fast they come, and what a model makes of them."""

import time

import numpy as np
import pytest

from keras_bert_impl.config import BertConfig
from keras_bert_impl.models.bert_pretrainer import BertPretrainer
from keras_bert_impl.training.configs import PrepareConfig
from keras_bert_impl.training.examples.prepared_data import PreparedData
from keras_bert_impl.training.input_pipeline import training_batches
from keras_bert_impl.training.prepare import prepare

pytestmark = [pytest.mark.slow, pytest.mark.shared]

LENGTH, BATCH = 512, 32


@pytest.fixture(scope="module")
def data(tmp_path_factory, shared):
    """The help texts of LibreOffice, most of which are far shorter than a row."""
    folder = tmp_path_factory.mktemp("help")
    said = []
    prepare(
        PrepareConfig(
            inputs=(str(shared / "data/corpora/en_libreoffice_help.txt.xz"),),
            vocab=str(shared / "data/vocab/bert-base-uncased-vocab.txt"),
            output=str(folder / "data"),
            lengths=(LENGTH,),
        ),
        say=said.append,
    )
    print(*(line for line in said if "packed into" in line), sep="\n")
    return PreparedData(folder / "data")


def batches(data, packed, steps):
    examples = data.examples("train", LENGTH)
    return training_batches(
        examples, batch_size=BATCH, seed=1, first_step=0, num_steps=steps, tokenizer=data.tokenizer, packed=packed
    )


def test_a_packed_row_has_far_more_tokens_and_its_batches_come_nearly_as_fast(data):
    tokens, rates = {}, {}
    for packed in (False, True):
        start, tokens[packed], examples, steps = None, 0, 0, 640
        for step, (x, y) in enumerate(batches(data, packed, steps + BATCH)):
            if step == BATCH:  # What is before was made while the pipeline started.
                start = time.perf_counter()
            elif start:
                tokens[packed] += np.count_nonzero(x["pair_ids" if packed else "padding_mask"])
                examples += int(y["next_sentence_weights"].numpy().sum())
        rates[packed] = examples / (time.perf_counter() - start)
    gain = tokens[True] / tokens[False]
    facts = data.manifest["examples"]["train"][str(LENGTH)]
    print(f"Tokens per row: {gain:.2f} times those of unpacked rows")
    print(f"Examples per second: {rates[True]:,.0f} packed, {rates[False]:,.0f} unpacked")
    assert gain == pytest.approx(facts["packed_fill"] / facts["mean_fill"], rel=0.05)
    assert gain >= 1.8
    assert rates[True] > 0.25 * rates[False]


def test_the_outputs_of_every_pair_are_those_that_it_has_alone(data):
    config = BertConfig(
        vocab_size=data.tokenizer.vocab_size,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=LENGTH,
        initializer_range=0.2,
    )
    model = BertPretrainer(config)
    x, y = next(batches(data, True, 1).as_numpy_iterator())
    together = {name: value.numpy() for name, value in model.packed_form()(x).items()}
    alone = {name: [] for name in ("token_ids", "segment_ids", "padding_mask", "mask_positions")}
    places = list(zip(*np.nonzero(y["next_sentence_weights"]), strict=True))
    predicted = []
    for row, slot in places:
        start, size = x["cls_positions"][row, slot], np.count_nonzero(x["pair_ids"][row] == slot + 1)
        spare = (0, LENGTH - size)
        for name in ("token_ids", "segment_ids"):
            alone[name].append(np.pad(x[name][row, start : start + size], spare))
        alone["padding_mask"].append(np.pad(np.ones(size, "int32"), spare))
        positions = x["mask_positions"][row] - start
        slots = np.flatnonzero((y["mask_weights"][row] > 0) & (positions >= 0) & (positions < size))
        alone["mask_positions"].append(np.pad(positions[slots], (0, positions.size - slots.size)))
        predicted.append(slots)
    assert len(places) > 1.8 * BATCH and sum(map(len, predicted)) == y["mask_weights"].sum()
    expected = model.predict({name: np.stack(values) for name, values in alone.items()}, batch_size=8, verbose=0)
    for pair, ((row, slot), slots) in enumerate(zip(places, predicted, strict=True)):
        found = together["mlm_logits"][row, slots]
        np.testing.assert_allclose(found, expected["mlm_logits"][pair, : slots.size], rtol=0, atol=1e-5)
        np.testing.assert_allclose(together["nsp_logits"][row, slot], expected["nsp_logits"][pair], rtol=0, atol=1e-5)
