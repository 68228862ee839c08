import json
import lzma

import pytest

from keras_bert_impl.tokenization.in_graph import InGraphWordPiece
from keras_bert_impl.tokenization.in_graph_text_ops import TextOpsWordPiece
from keras_bert_impl.tokenization.wordpiece import WordPieceTokenizer


def examples(shared, file):
    with lzma.open(shared / "data" / "bert_original" / f"{file}.json.xz") as golden:
        return json.load(golden)


@pytest.fixture(params=["uncased", "cased", "chinese"])
def name(request):
    return request.param


@pytest.fixture
def tokenizer(shared, name):
    path = shared / "data" / "vocab" / f"bert-base-{name}-vocab.txt"
    return WordPieceTokenizer.from_vocab_file(path, lowercase=name != "cased")


@pytest.mark.shared
def test_python_equals_the_original_on_every_golden_text(shared, name, tokenizer):
    for file in ("golden_tokenization", "golden_tokenization_fuzz"):
        for example in examples(shared, file):
            text = example["text"]
            assert tokenizer.tokenize(text, keep_special_tokens=False) == example[name]
            assert tokenizer.encode(text, keep_special_tokens=False).tokens == example[name]


@pytest.mark.shared
@pytest.mark.parametrize("form", [InGraphWordPiece, TextOpsWordPiece])
def test_in_graph_equals_the_original_on_every_golden_text(shared, name, tokenizer, form):
    in_graph = form(tokenizer)
    for file in ("golden_tokenization", "golden_tokenization_fuzz"):
        known = examples(shared, file)
        texts = [example["text"] for example in known]
        results = [in_graph(texts, keep_special_tokens=False).to_list()]
        if file == "golden_tokenization":
            results.append([in_graph([text], keep_special_tokens=False).to_list()[0] for text in texts])
        for all_ids in results:
            assert [[tokenizer.vocabulary[i] for i in ids] for ids in all_ids] == [example[name] for example in known]
