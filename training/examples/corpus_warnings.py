"""Sentences on what is probably not as it was meant: the vocabulary, the documents, duplicates."""

from collections.abc import Iterator
from typing import Any

from keras_bert_impl.tokenization.wordpiece import WordPieceTokenizer

from ..corpus.wording import counted

# A vocabulary that was learnt from text like this one leaves less of it unknown.
_MOST_UNKNOWN = 0.01
_NEARLY_EVERY = 0.9
_MANY = 0.2


def corpus_warnings(manifest: dict[str, Any], tokenizer: WordPieceTokenizer) -> Iterator[str]:
    """Yields a sentence for everything that looks wrong.

    Args:
        manifest: all counts.
        tokenizer: the vocabulary.
    """
    yield from _of_the_vocabulary(manifest, tokenizer)
    yield from _of_the_documents(manifest)


def _of_the_vocabulary(manifest: dict[str, Any], tokenizer: WordPieceTokenizer) -> Iterator[str]:
    if manifest["unknown_share"] > _MOST_UNKNOWN:
        yield (
            f"Warning: {manifest['unknown_share']:.1%} of the tokens are unknown to the vocabulary; "
            "take one that fits, or learn one from this text with `keras-bert vocab`."
        )
    kept = {*tokenizer.special_tokens, *tokenizer.added_tokens}
    upper_case = sum(token != token.lower() for token in tokenizer.vocabulary if token not in kept)
    text = manifest["text"]
    if tokenizer.lowercase and upper_case:
        yield (
            f"Warning: {counted(upper_case, 'token')} of the vocabulary (of {tokenizer.vocab_size:,}) can never occur, "
            "for they have upper-case letters and the text is lower-cased; if the vocabulary is a cased one, "
            "give --cased."
        )
    if not tokenizer.lowercase and not upper_case and text["upper_case_sentences"]:
        yield (
            f"Warning: {counted(text['upper_case_sentences'], 'sentence')} of the text "
            f"({_share(text['upper_case_sentences'], manifest):.0%}) have upper-case letters, which no token of the "
            "vocabulary has; if the vocabulary is a lower-casing one, leave --cased out."
        )
    if not tokenizer.lowercase and upper_case and manifest["sentences"]["train"] and not text["upper_case_sentences"]:
        yield (
            f"Warning: {counted(upper_case, 'token')} of the vocabulary (of {tokenizer.vocab_size:,}) have upper-case "
            "letters and the text has none; if it was lower-cased, take a lower-casing vocabulary."
        )


def _of_the_documents(manifest: dict[str, Any]) -> Iterator[str]:
    documents = manifest["documents"]
    kept = documents["train"] + documents["held_out"]
    single = manifest["single_sentence_documents"]
    if manifest["next_sentence"] and kept > 1 and single >= _NEARLY_EVERY * kept:
        yield (
            f"Warning: {single / kept:.0%} of the documents are a single sentence, so nearly every second part is "
            "random and there is hardly a true next sentence to learn from; is a blank line between all sentences, "
            "or should --documents be another? Without next sentences: --examples chunks."
        )
    if documents["duplicates_removed"] > _MANY * documents["read"]:
        yield (
            f"Warning: {documents['duplicates_removed'] / documents['read']:.0%} of the documents are exact duplicates "
            "of others and were left out; is a file named twice, or the text gathered twice?"
        )
    near = manifest["near_duplicates"]["documents"] or 0
    if near > _MANY * documents["read"]:
        cure = "" if documents["near_duplicates_removed"] else "; --near-duplicates remove keeps the first of each"
        yield f"Warning: {near / documents['read']:.0%} of the documents are near-duplicates of others{cure}."


def _share(sentences: int, manifest: dict[str, Any]) -> float:
    return sentences / max(1, sum(manifest["sentences"].values()))
