"""Small models and tokenizers of their own for the tests of tasks."""

from typing import Any

from keras_bert_impl.config import BertConfig
from keras_bert_impl.models import (
    BertClassifier,
    BertEncoder,
    BertPretrainer,
    BertQuestionAnswerer,
    BertTokenClassifier,
)
from keras_bert_impl.tokenization.wordpiece import WordPieceTokenizer

MODELS: dict[str, tuple[Any, dict[str, Any] | None]] = {
    "embedding": (lambda config: BertEncoder(config, seed=3), None),
    "fill-mask": (lambda config: BertPretrainer(config, seed=3), None),
    "classification": (
        lambda config: BertClassifier(config, labels=("bad", "søso", "good"), seed=3),
        {"pair": True, "max_length": 33},
    ),
    "multilabel": (
        lambda config: BertClassifier(
            config, labels=("short", "fine"), problem_type="multi_label_classification", seed=3
        ),
        {"label_threshold": 0.6},
    ),
    "regression": (
        lambda config: BertClassifier(config, labels=("score",), problem_type="regression", seed=3),
        {"pair": False},
    ),
    "tagging": (lambda config: BertTokenClassifier(config, labels=("O", "B-person", "I-person"), seed=3), {}),
    "qa": (lambda config: BertQuestionAnswerer(config, seed=3), {"max_question_length": 9, "may_have_no_answer": True}),
}
"""Models to be exported, by name, and the settings of their tasks; None where there are none."""

SPECIAL_TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = "good fine great nice bad dull poor awful film book play song a the was very not and i it . , ! ?".split()


def toy_tokenizer(words: list[str] | None = None, **options: Any) -> WordPieceTokenizer:
    """Returns a tokenizer of whole words, and of letters for what is none of them."""
    letters = [piece for letter in "abcdefghijklmnopqrstuvwxyz" for piece in (letter, f"##{letter}")]
    vocabulary = dict.fromkeys([*SPECIAL_TOKENS, *(WORDS if words is None else words), *letters])
    return WordPieceTokenizer(list(vocabulary), **options)


def toy_bert_config(tokenizer: WordPieceTokenizer, **fields: Any) -> BertConfig:
    """Returns the configuration of an encoder of two small blocks."""
    return BertConfig(
        **{
            "vocab_size": tokenizer.vocab_size,
            "hidden_size": 16,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "intermediate_size": 32,
            "max_position_embeddings": 64,
            # Larger than usual, so that fresh heads tell rows apart.
            "initializer_range": 0.3,
            **fields,
        }
    )
