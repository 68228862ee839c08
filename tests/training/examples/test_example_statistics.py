"""What `prepare` and the masks make of text, counted over many examples: a hundred thousand in the slow tests.

A chunk of a single sentence always takes a random second part, as in the original; the manifest counts such chunks.
They are the ends of documents, and all chunks of a document whose shorter length (`short_seq_prob`) was drawn below
that of its sentences: a good twentieth of all examples by default, however long documents are. So half of the labels
are random where no shorter lengths are drawn and documents are long; by default half of those are that had the choice.

Every fourth sentence is one of three stock sentences, so that a random part often begins with the very words of the
true successor, unless that is prevented.
"""

import dataclasses
import functools
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path

import numpy as np
import pytest

from keras_bert_impl.training.configs import PrepareConfig
from keras_bert_impl.training.examples.masking import mask_batch, max_predictions
from keras_bert_impl.training.examples.prepared_data import ExampleSet, PreparedData
from keras_bert_impl.training.prepare import prepare

WORDS = np.array([f"{first}{second}{third}" for first in "bdfgklmn" for second in "aeiou" for third in "prstvwxz"])
STOCK = ["so it goes again now.", "that is what they said.", "nobody knew what to say."]
LETTERS = sorted(set("".join([*WORDS, *STOCK])) - {" "})
TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *LETTERS, *(f"##{letter}" for letter in LETTERS), *WORDS]
# So many tokens at its end tell a sentence from any other.
TELLING = 6

Rows = dict[str, np.ndarray]


@dataclasses.dataclass
class Made:
    """Prepared data and what its text was."""

    data: PreparedData
    examples: ExampleSet
    documents: list[list[str]]
    close: bool

    def within(self, points: float) -> float:
        """The tolerance, in shares: wider for the few examples of the quick tests."""
        return points / 100 if self.close else points / 20

    def stretches(self) -> Iterator[np.ndarray]:
        return iter(np.array_split(np.arange(len(self.examples)), 1 + len(self.examples) // 2048))

    def masked(self, numbers: np.ndarray, epoch: int = 0) -> Rows:
        tokenizer, length = self.data.tokenizer, self.examples.length
        mask = functools.partial(
            mask_batch,
            vocab_size=tokenizer.vocab_size,
            special_token_ids=tokenizer.special_token_ids,
            mask_token_id=tokenizer.mask_token_id,
            max_predictions=max_predictions(length, 0.15),
            masked_share=0.15,
            seed=1,
        )
        return mask(self.examples.rows(numbers), epoch=epoch)


def make_documents(count: int) -> list[list[str]]:
    rng = np.random.default_rng(0)

    def sentence(number: int) -> str:
        if number % 4 == 3:
            return STOCK[rng.integers(3)]
        return " ".join(rng.choice(WORDS, rng.integers(6, 18))) + "."

    return [[sentence(number) for number in range(rng.integers(800, 1100))] for _ in range(count)]


@pytest.fixture(
    scope="module",
    params=[
        pytest.param((128, 0.1, 10, 1, 1_200), id="quick"),
        pytest.param((128, 0.0, 175, 5, 100_000), id="128", marks=pytest.mark.slow),
        pytest.param((512, 0.1, 175, 15, 100_000), id="512", marks=pytest.mark.slow),
    ],
)
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Made:
    length, short_seq_prob, count, passes, least = request.param
    folder: Path = tmp_path_factory.mktemp("statistics")
    documents = make_documents(count)
    (folder / "corpus.txt").write_text("\n\n".join("\n".join(lines) for lines in documents), encoding="utf-8")
    (folder / "vocab.txt").write_text("".join(f"{token}\n" for token in TOKENS), encoding="utf-8")
    config = PrepareConfig(
        inputs=(str(folder / "corpus.txt"),),
        vocab=str(folder / "vocab.txt"),
        output=str(folder / "data"),
        lengths=(length,),
        passes=passes,
        short_seq_prob=short_seq_prob,
        sentences="lines",
        held_out_share=0,
        near_duplicates="off",
        workers=1 if least < 100_000 else 2,
    )
    prepare(config)
    data = PreparedData(folder / "data")
    made = Made(data, data.examples("train", length), documents, close=least >= 100_000)
    assert len(made.examples) >= least
    return made


def test_fifteen_percent_of_the_positions_are_chosen_and_none_is_a_special_token(made: Made):
    chosen = positions = 0
    for numbers in made.stretches():
        batch = made.masked(numbers)
        lengths = batch["padding_mask"].sum(axis=1)
        labels = batch["mask_labels"][batch["mask_weights"] > 0]
        assert not np.isin(labels, made.data.tokenizer.special_token_ids).any()
        wanted = np.maximum(1, np.rint(lengths * 0.15))
        assert np.array_equal(batch["mask_weights"].sum(axis=1), wanted)
        chosen, positions = chosen + labels.size, positions + int(lengths.sum())
    print(f"chosen: {chosen / positions:.4%} of {positions:,} positions in {len(made.examples):,} examples")
    if made.examples.length == 512:
        assert chosen / positions == pytest.approx(0.15, abs=0.001)
    else:  # Of a full row of 128 tokens it is 19, which is 14.84 %; so it is in the original.
        assert 19 / 128 - 0.0002 < chosen / positions < 0.151


def test_of_the_chosen_80_percent_are_masked_10_kept_and_10_replaced_within_the_vocabulary(made: Made):
    kinds = np.zeros(3, np.int64)
    size = made.data.tokenizer.vocab_size
    for numbers in made.stretches():
        batch = made.masked(numbers)
        assert batch["token_ids"].min() >= 0 and batch["token_ids"].max() < size
        used = batch["mask_weights"] > 0
        shown = np.take_along_axis(batch["token_ids"], batch["mask_positions"], axis=1)[used]
        masked, kept = shown == made.data.tokenizer.mask_token_id, shown == batch["mask_labels"][used]
        kinds += [masked.sum(), kept.sum(), (~masked & ~kept).sum()]
    print(f"kinds: {kinds / kinds.sum()}")
    # Of the random tokens, one in `size` is the mask and one the token itself.
    drawn = kinds / kinds.sum() + np.array([-1, -1, 2]) * 0.1 / size
    assert drawn == pytest.approx([0.8, 0.1, 0.1], abs=made.within(0.5))


def test_half_of_the_pairs_are_random(made: Made):
    labels = np.concatenate([made.examples.rows(numbers)["next_sentence_labels"] for numbers in made.stretches()])
    facts = made.data.manifest["examples"]["train"][str(made.examples.length)]
    single = facts["single_sentence_chunks"]
    print(f"random: {labels.mean():.4%}, of which chunks of a single sentence: {single / labels.size:.4%}")
    assert (labels.sum() - single) / (labels.size - single) == pytest.approx(0.5, abs=made.within(0.5))
    if made.data.manifest["settings"]["short_seq_prob"] == 0:
        assert labels.mean() == pytest.approx(0.5, abs=0.005)


def test_no_true_successor_is_labelled_random(made: Made):
    tokenizer = made.data.tokenizer
    following: dict[tuple[int, ...], list[int]] = {}
    for lines in made.documents:
        sentences = [tokenizer.encode_ids(text) for text in lines]
        for number, text in enumerate(lines):
            if text not in STOCK:
                after = chain.from_iterable(sentences[number + 1 : number + 1 + made.examples.length // 5])
                following[tuple(sentences[number][-TELLING:])] = list(islice(after, made.examples.length))
    stock = {tuple(tokenizer.encode_ids(text)[:TELLING]) for text in STOCK}
    true = random = tempting = 0
    for numbers in made.stretches():
        rows = made.examples.rows(numbers)
        ends = rows["padding_mask"].sum(axis=1) - 1
        for token_ids, middle, end, label in zip(
            rows["token_ids"], rows["segment_ids"].argmax(axis=1), ends, rows["next_sentence_labels"], strict=True
        ):
            successor = following.get(tuple(token_ids[middle - 1 - TELLING : middle - 1].tolist()))
            if successor is None:
                continue  # A stock sentence, or one whose end was cut off.
            second = token_ids[middle:end].tolist()
            if second == successor[: len(second)]:
                assert label == 0
                true += 1
            random += int(label)
            tempting += int(label) * (tuple(successor[:TELLING]) in stock and tuple(second[:TELLING]) in stock)
    print(f"true successors: {true:,}; random: {random:,}, {tempting:,} of them in danger of being true")
    assert min(true, random) > 0.03 * len(made.examples)
    assert tempting > 0.002 * len(made.examples)


def test_in_the_second_epoch_the_masks_differ_and_the_text_does_not(made: Made):
    same = 0
    for numbers in made.stretches():
        one, other = (made.masked(numbers, epoch) for epoch in (0, 1))
        same += int((one["mask_positions"] == other["mask_positions"]).all(axis=1).sum())
        for batch in (one, other):
            row, slot = np.nonzero(batch["mask_weights"])
            batch["token_ids"][row, batch["mask_positions"][row, slot]] = batch["mask_labels"][row, slot]
        assert np.array_equal(one["token_ids"], other["token_ids"])
        assert np.array_equal(one["token_ids"], made.examples.rows(numbers)["token_ids"])
    assert same < 0.005 * len(made.examples)  # Rows of a few tokens have few masks to choose from.
