"""Learning a WordPiece vocabulary from text."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from keras_bert_impl.errors import InputError
from keras_bert_impl.tokenization.text_normalizer import TextNormalizer
from keras_bert_impl.tokenization.vocabulary_file import SPECIAL_TOKENS
from keras_bert_impl.tokenization.word_counts import count_words

CONTINUATION = "##"

# The trainer sees every symbol, a character at the start of a word or inside one, as one character from here on.
_FIRST_SYMBOL = 0x10000
_FED_AT_ONCE = 1 << 14

# Characters of all the different words that the trainer gets; it needs about 100 bytes for each.
_MOST_CHARACTERS = 1 << 23


def learn_vocabulary(
    texts: Iterable[str],
    size: int,
    *,
    lowercase: bool = True,
    strip_accents: bool | None = None,
    split_cjk: bool = True,
    min_frequency: int = 2,
    unused: int = 0,
    character_coverage: float = 1.0,
    say: Callable[[str], None] = lambda line: None,
) -> list[str]:
    """Returns a vocabulary: the special tokens, `[PAD]` first, then characters, then pieces as they were learnt.

    Reserved tokens `[unused0]`, `[unused1]`, … stand between `[PAD]` and `[UNK]`; with 99 of them the special
    tokens have the ids of the released vocabularies.

    The words are those that `WordPieceTokenizer` will see, for both use `TextNormalizer`. The pieces are then
    merged by the `tokenizers` library's trainer. The same text gives the same vocabulary, on any number of
    threads. Memory does not grow with the text: the rarest words are forgotten when there are more than a million
    (`count_words` has the rule), and pieces are merged from the most frequent ones, 8 million characters in all.

    Args:
        texts: iterable of strings, for example lines. Read once.
        size: int. Number of tokens to reach, the special and reserved ones included. Little text gives fewer.
        lowercase: bool. As in `WordPieceTokenizer`.
        strip_accents: bool or None. As in `WordPieceTokenizer`; None: as `lowercase`.
        split_cjk: bool. As in `WordPieceTokenizer`.
        min_frequency: int. Two pieces are merged only if seen this often. Characters need not be: each gets a
            token at the start of a word and one inside it, most frequent first, in half of the size at most.
        unused: int. Number of reserved tokens.
        character_coverage: float, more than 0, at most 1. Share of the text's characters, the most frequent first,
            that get tokens; words with one of the others are unknown. Texts of thousands of different characters,
            such as Chinese ones, lose little and gain room for pieces at 0.9995.
        say: called with a line about anything that did not come out as asked for.

    Raises:
        InputError: if the text has no words, or a setting is out of its range.
    """
    if unused < 0:
        raise InputError(f"`unused` must be at least 0. Received: unused={unused}")
    reserved = [*SPECIAL_TOKENS[:1], *(f"[unused{number}]" for number in range(unused)), *SPECIAL_TOKENS[1:]]
    if size <= len(reserved):
        names = "the special and the unused tokens" if unused else "the special tokens"
        raise InputError(f"`size` must be more than {len(reserved)}, {names}. Received: size={size}")
    if not 0 < character_coverage <= 1:
        raise InputError(
            f"`character_coverage` must be more than 0 and at most 1. Received: character_coverage={character_coverage}"
        )
    if min_frequency < 1:
        raise InputError(f"`min_frequency` must be at least 1. Received: min_frequency={min_frequency}")
    normalizer = TextNormalizer(
        lowercase=lowercase,
        strip_accents=lowercase if strip_accents is None else strip_accents,
        split_cjk=split_cjk,
    )
    words = count_words(texts, normalizer, say=say)
    if not words:
        raise InputError("`texts` must contain words to learn a vocabulary from. Received: none")
    words = _with_frequent_characters(words, character_coverage, say)
    room = size - len(reserved)
    symbols = _choose_symbols(words, room, normalizer, say)
    learnt = _merge(_most_frequent(words, say), symbols, room, min_frequency)
    if len(learnt) < room:
        characters_alone = "it is too short for more than its single characters, for " * (len(learnt) == len(symbols))
        say(
            f"the text gives only {len(learnt) + len(reserved)} tokens, not {size}: {characters_alone}"
            f"no {'two' if characters_alone else 'other'} pieces stand together at least {min_frequency} times"
        )
    return [*reserved, *learnt]


def _with_frequent_characters(
    words: Counter[str], character_coverage: float, say: Callable[[str], None]
) -> Counter[str]:
    """Returns the words that have only the most frequent characters: as few as make up the share."""
    if character_coverage == 1:
        return words
    counts: Counter[str] = Counter()
    for word, count in words.items():
        for char in word:
            counts[char] += count
    in_order = sorted(counts, key=lambda char: (-counts[char], char))
    total = counts.total()
    covered = 0
    kept: set[str] = set()
    for char in in_order:
        if covered >= character_coverage * total:
            break
        covered += counts[char]
        kept.add(char)
    if len(kept) < len(in_order):
        say(
            f"{len(kept)} of {len(in_order)} different characters get tokens; the others, {1 - covered / total:.3%} of "
            "the text, make their words unknown"
        )
    return Counter({word: count for word, count in words.items() if kept.issuperset(word)})


def _most_frequent(words: Counter[str], say: Callable[[str], None]) -> Counter[str]:
    """Returns the words, without the rarest if together they are too long for the trainer's memory."""
    characters = sum(map(len, words))
    if characters <= _MOST_CHARACTERS:
        return words
    kept = Counter(words)
    for word in sorted(words, key=lambda word: (words[word], word)):
        if characters <= _MOST_CHARACTERS:
            break
        characters -= len(word)
        del kept[word]
    say(
        f"pieces are learnt from the {len(kept):,} most frequent of {len(words):,} different words "
        f"({kept.total() / words.total():.2%} of the text)"
    )
    return kept


def _choose_symbols(
    words: Counter[str], room: int, normalizer: TextNormalizer, say: Callable[[str], None]
) -> list[str]:
    """Returns the single-character tokens, most frequent first: at most half of the room, or a first one.

    Last come those that this text does not have but another may: its characters where they did not stand.
    """
    counts: Counter[str] = Counter()
    for word, count in words.items():
        counts[word[0]] += count
        for char in word[1:]:
            counts[CONTINUATION + char] += count
    in_order = sorted(counts, key=lambda symbol: (-counts[symbol], symbol))
    most = max(1, room // 2)
    if len(in_order) > most:
        lost = in_order[most:]
        share = sum(counts[symbol] for symbol in lost) / counts.total()
        characters = "1 rare character gets" if len(lost) == 1 else f"{len(lost)} rare characters get"
        say(
            f"{characters} no token ({share:.2%} of the text's characters), counted apart at the start of a word "
            "and inside one; a larger size has room for more"
        )
    return [*in_order, *_unseen_symbols(in_order, normalizer)][:most]


def _unseen_symbols(seen: list[str], normalizer: TextNormalizer) -> list[str]:
    """Returns every character in the form, start or inside of a word, in which it was not seen but can stand."""
    unseen = []
    for symbol in seen:
        char = symbol.removeprefix(CONTINUATION)
        inside = CONTINUATION + char
        other, example = (char, char) if symbol == inside else (inside, "a" + char)
        if normalizer.stretches(example) == normalizer.word_texts(example) == [example]:
            unseen.append(other)
    known = set(seen)
    return [symbol for symbol in unseen if symbol not in known]


def _merge(words: Counter[str], symbols: list[str], size: int, min_frequency: int) -> list[str]:
    """Returns the symbols and the pieces merged from them, `size` at most."""
    # The trainer knows no difference between start and inside of a word unless told by a prefix; but with a prefix
    # its result depends on the order in which its hash table yields the words. Each symbol as a character of its
    # own gives the same pieces, always.
    code = {symbol: chr(_FIRST_SYMBOL + number) for number, symbol in enumerate(symbols)}
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    trainer = trainers.BpeTrainer(
        vocab_size=size, min_frequency=min_frequency, initial_alphabet=list(code.values()), show_progress=False
    )
    tokenizer.train_from_iterator(_repeated(words, code), trainer)
    learnt = tokenizer.get_vocab()
    pieces = []
    for coded in sorted(learnt, key=learnt.__getitem__):
        first, *others = (symbols[ord(char) - _FIRST_SYMBOL] for char in coded)
        pieces.append(first + "".join(other.removeprefix(CONTINUATION) for other in others))
    return pieces


def _repeated(words: Counter[str], code: dict[str, str]) -> Iterator[str]:
    """Yields every word, in the trainer's symbols, as often as it was counted, many at a time."""
    for word, count in words.items():
        symbols = [word[0], *(CONTINUATION + char for char in word[1:])]
        if all(symbol in code for symbol in symbols):
            coded = "".join(code[symbol] for symbol in symbols) + " "
            full, rest = divmod(count, _FED_AT_ONCE)
            for _ in range(full):
                yield coded * _FED_AT_ONCE
            yield coded * rest
