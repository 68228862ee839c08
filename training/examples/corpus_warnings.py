"""Sentences on what is probably not as it was meant: the vocabulary, the documents, duplicates."""

from collections.abc import Iterator
from typing import Any

from keras_bert_impl.tokenization.wordpiece import WordPieceTokenizer

from ..corpus.wording import counted, percent

# A vocabulary that was learnt from text like this one leaves less of it unknown.
_MOST_UNKNOWN = 0.01
# A cased vocabulary has upper-case letters in a tenth of its tokens or more; fewer are slips or marks.
_CASED = 0.01
_NAMED = 5
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
            f"Warning: {percent(manifest['unknown_share'], 1)} of the tokens are unknown to the vocabulary; "
            "take one that fits, or learn one from this text with `keras-bert vocab`."
        )
    yield from lower_casing_notes(tokenizer)
    upper_case, is_cased, tokens = _upper_case(tokenizer)
    sentences = manifest["text"]["upper_case_sentences"]
    if not tokenizer.lowercase and not is_cased and sentences:
        owners = "no token of the vocabulary has"
        if upper_case:
            owners = f"only {tokens} {'has' if len(upper_case) == 1 else 'have'}"
        yield (
            f"Warning: {counted(sentences, 'sentence')} of the text ({percent(_share(sentences, manifest))}) have "
            f"upper-case letters, which {owners}; if the vocabulary is a lower-casing one, leave --cased out."
        )
    if not tokenizer.lowercase and is_cased and manifest["sentences"]["train"] and not sentences:
        yield (
            f"Warning: {tokens} have upper-case letters and the text has none; if it was lower-cased, "
            "take a lower-casing vocabulary."
        )


def lower_casing_notes(tokenizer: WordPieceTokenizer) -> Iterator[str]:
    """Yields a sentence if the tokenizer lower-cases and its vocabulary has upper-case letters."""
    upper_case, is_cased, tokens = _upper_case(tokenizer)
    if tokenizer.lowercase and is_cased:
        yield (
            f"Warning: {tokens} can never occur, for they have upper-case letters and the text is lower-cased; "
            "if the vocabulary is a cased one, give --cased."
        )
    elif tokenizer.lowercase and upper_case:
        named = ", ".join(upper_case[:_NAMED]) + (", …" if len(upper_case) > _NAMED else "")
        yield f"Upper-case letters, which lower-cased text never has, are in {tokens}: {named}."


def _upper_case(tokenizer: WordPieceTokenizer) -> tuple[list[str], bool, str]:
    """Returns the tokens with upper-case letters, whether the vocabulary is a cased one, and words for the former."""
    kept = {*tokenizer.special_tokens, *tokenizer.added_tokens}
    tokens = [token for token in tokenizer.vocabulary if token not in kept and token != token.lower()]
    words = f"{counted(len(tokens), 'token')} of the vocabulary (of {tokenizer.vocab_size:,})"
    return tokens, len(tokens) >= _CASED * tokenizer.vocab_size, words


def _of_the_documents(manifest: dict[str, Any]) -> Iterator[str]:
    documents = manifest["documents"]
    kept = documents["train"] + documents["held_out"]
    single = manifest["single_sentence_documents"]
    if manifest["next_sentence"] and kept > 1 and single >= _NEARLY_EVERY * kept:
        yield (
            f"Warning: {percent(single / kept)} of the documents are a single sentence, so nearly every second part is "
            "random and there is hardly a true next sentence to learn from; is a blank line between all sentences, "
            "or should --documents be another? Without next sentences: --examples chunks."
        )
    if documents["duplicates_removed"] > _MANY * documents["read"]:
        yield (
            f"Warning: {percent(documents['duplicates_removed'] / documents['read'])} of the documents are exact "
            "duplicates of others and were left out; is a file named twice, or the text gathered twice?"
        )
    near = manifest["near_duplicates"]["documents"] or 0
    if near > _MANY * documents["read"]:
        cure = "" if documents["near_duplicates_removed"] else "; --near-duplicates remove keeps the first of each"
        yield f"Warning: {percent(near / documents['read'])} of the documents are near-duplicates of others{cure}."


def _share(sentences: int, manifest: dict[str, Any]) -> float:
    return sentences / max(1, sum(manifest["sentences"].values()))
