"""Both real encoders with a head for every task, and what each is asked."""

from pathlib import Path

from keras_bert_impl.models import (
    BertClassifier,
    BertEncoder,
    BertPretrainer,
    BertQuestionAnswerer,
    BertTokenClassifier,
)
from keras_bert_impl.tasks import TaskSettings
from keras_bert_impl.tokenization.wordpiece import WordPieceTokenizer

MODELS = ("all-MiniLM-L6-v2", "bert-tiny-splade-mlm")
LABELS = ("no", "søso", "ja")
HEADS = {
    "classification": (BertClassifier, {"labels": LABELS}, {}),
    "pairs": (BertClassifier, {"labels": LABELS}, {"task": "classification", "pair": True}),
    "multilabel": (BertClassifier, {"labels": LABELS, "problem_type": "multi_label_classification"}, {}),
    "regression": (BertClassifier, {"labels": ("score",), "problem_type": "regression"}, {}),
    "tagging": (BertTokenClassifier, {"labels": ("O", "B-x", "I-x")}, {}),
    "qa": (BertQuestionAnswerer, {}, {"may_have_no_answer": True}),
    "embedding": (BertEncoder, {}, None),
    "fill-mask": (BertPretrainer, {}, None),
}


def with_head(name: str, source: Path, folder: Path) -> Path:
    """A model directory of the real encoder with a fresh head, or with its own."""
    model_class, options, settings = HEADS[name]
    fresh = ("pooler", "mlm_head", "nsp_head", "classifier", "qa_head")
    model = model_class.from_pretrained(source, allow_missing=fresh, seed=1, **options)
    model.save_pretrained(folder, tokenizer=WordPieceTokenizer.from_pretrained(source))
    if settings is not None:
        TaskSettings(**{"task": name, **settings}).save(folder)
    return folder


def asked(name: str, texts: list[str]) -> list[tuple[str, ...]]:
    """What each kind is asked about the texts."""
    others = [texts[(7 * i + 3) % len(texts)] for i in range(len(texts))]
    if name == "qa":
        return [(" ".join(other.split()[:12])[:80], text) for text, other in zip(texts, others, strict=True)]
    if name == "pairs":
        return list(zip(others, texts, strict=True))
    if name != "fill-mask":
        return [(text,) for text in texts]
    with_masks = []
    for i, text in enumerate(texts):
        words = text.split(" ")
        for n in range(i % 4):
            words.insert(min(len(words), 5 * n + 2), "[MASK]")
        with_masks.append((" ".join(words),))
    return with_masks
