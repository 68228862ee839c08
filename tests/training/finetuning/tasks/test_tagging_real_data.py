"""Published sentences with named entities: read, cut into windows, and put together again."""

import itertools

import pytest
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

from keras_bert_impl.tasks.word_windows import sentence_rows, window_sizes
from keras_bert_impl.tokenization.wordpiece import WordPieceTokenizer
from keras_bert_impl.training.configs import FinetuneConfig
from keras_bert_impl.training.finetuning.data.tagged_files import read_tagged_sentences
from keras_bert_impl.training.finetuning.metrics.tagging import score_tags

pytestmark = [pytest.mark.slow, pytest.mark.shared]

# Files, vocabulary, and the published numbers: sentences, words, spans.
SETS = {
    "wnut17": ("ner/wnut17/train.conll", "bert-base-cased-vocab.txt", (3394, 62730, 1975)),
    "wnut17 test": ("ner/wnut17/test.conll", "bert-base-uncased-vocab.txt", (1287, 23394, 1079)),
    "weibo": ("ner_zh/weibo/dev.conll", "bert-base-chinese-vocab.txt", (270, 14509, 389)),
}


@pytest.fixture(scope="module", params=SETS)
def read(request, shared):
    file, vocabulary, counts = SETS[request.param]
    path = str(shared / "data" / file)
    config = FinetuneConfig(task="tagging", model="m", train=(path,), output="o")
    sentences = read_tagged_sentences([path], config, argument="train", labelled=True, say=lambda line: None)
    lowercase = "uncased" in vocabulary or "chinese" in vocabulary
    tokenizer = WordPieceTokenizer.from_vocab_file(shared / "data" / "vocab" / vocabulary, lowercase=lowercase)
    return sentences, tokenizer, counts


def test_sentences_words_and_spans_are_as_many_as_published(read):
    sentences, _, counts = read
    tags = [sentence.tags for sentence in sentences]
    metrics = score_tags(tags, tags)
    assert (metrics["sentences"], metrics["words"], metrics["spans"]) == counts
    assert metrics["f1"] == metrics["f1_macro"] == metrics["accuracy"] == 1


@pytest.mark.parametrize("max_length,stride", [(16, None), (64, None), (128, None), (64, 8), (16, 14)])
def test_windows_read_every_word_once(read, max_length, stride):
    sentences, tokenizer, _ = read
    room, step = window_sizes(max_length, stride)
    in_windows = 0
    for sentence in sentences:
        rows = sentence_rows(tokenizer, sentence.words, room, step).rows
        in_windows += len(rows) > 1
        read_words = sorted(word.word for row in rows for word in row.words)
        assert read_words == list(range(len(sentence.words)))
        for row in rows:
            assert len(row.row.token_ids) <= max_length
            for word, start, end in row.words:
                pieces = tokenizer.encode_ids(sentence.words[word]) or [tokenizer.unk_token_id]
                assert row.row.token_ids[start:end] == pieces[:room]
    assert in_windows or max_length == 128


def test_words_are_cut_as_by_hugging_faces_tokenizer_of_words(read):
    sentences, tokenizer, _ = read
    theirs = Tokenizer(models.WordPiece(tokenizer.start_pieces, unk_token="[UNK]", max_input_chars_per_word=200))
    theirs.normalizer = normalizers.BertNormalizer(lowercase=tokenizer.lowercase)
    theirs.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    other = []
    for sentence in sentences:
        encoding = theirs.encode(list(sentence.words), is_pretokenized=True, add_special_tokens=False)
        pieces = [[] for _ in sentence.words]
        for token_id, word in zip(encoding.ids, encoding.word_ids, strict=True):
            pieces[word].append(token_id)
        ours = [tokenizer.encode_ids(word) for word in sentence.words]
        other += [word for word, a, b in zip(sentence.words, ours, pieces, strict=True) if a != b]
    assert other == []
    assert list(itertools.chain(*ours)) == encoding.ids
