"""From a document's lines to its sentences."""

from itertools import pairwise

import sentencex

from .documents import Document
from .text_lines import piece_end

SENTENCE_ENDS = ".!?:;…。！？：；।؟۔"
CLOSERS = "\"'”’»)]}」』）】*_"
TORN_SHARE = 1 / 3
SENTENCES_PER_LINE = 1.25


class SentenceSplitter:
    """Finds the sentences of a document.

    Args:
        mode: `"lines"`: every line is a sentence. `"split"`: running text, a paragraph per line or a
            wrapped one over several. `"auto"`: decided for each document by `layout`.
        language: language code for the abbreviations and sentence ends of the splitter.
        longest: a longer sentence is cut into pieces of at most so many characters, at a space where there is one.

    Attributes:
        long_sentences: how many were cut so far.
    """

    def __init__(self, mode: str, language: str, longest: int = 10_000):
        self.mode = mode
        self.language = language
        self.longest = longest
        self.long_sentences = 0

    def split(self, document: Document) -> tuple[list[str], str]:
        """Returns the sentences and how the lines were taken: `"lines"`, `"paragraphs"` or `"wrapped"`."""
        sentences, layout = self._split(document)
        if max(map(len, sentences), default=0) > self.longest:
            sentences = [piece for sentence in sentences for piece in self._pieces(sentence)]
        return sentences, layout

    def _split(self, document: Document) -> tuple[list[str], str]:
        if self.mode == "lines":
            return list(document.lines), "lines"
        if is_wrapped(document.lines):
            return self._sentences(" ".join(document.lines)), "wrapped"
        sentences = [sentence for line in document.lines for sentence in self._sentences(line)]
        if self.mode == "auto" and len(sentences) <= SENTENCES_PER_LINE * len(document.lines):
            # So few lines come apart that these are sentences already, split by someone who saw more than we do.
            return list(document.lines), "lines"
        return sentences, "paragraphs"

    def _sentences(self, text: str) -> list[str]:
        found = (sentence.strip() for sentence in sentencex.segment(self.language, text))
        return [sentence for sentence in found if sentence]

    def _pieces(self, sentence: str) -> list[str]:
        self.long_sentences += len(sentence) > self.longest
        pieces, start = [], 0
        while len(sentence) - start > self.longest:
            end = piece_end(sentence, start, self.longest)
            pieces.append(sentence[start:end].strip())
            start = end
        pieces.append(sentence[start:].strip())
        return [piece for piece in pieces if piece]


def is_wrapped(lines: tuple[str, ...]) -> bool:
    """Whether line ends fall inside sentences.

    A line end is torn where the line does not end a sentence and the next one begins with a small letter.
    Text wrapped at a width has that at nearly every line end, headings and lists seldom; the border is a third.
    """
    torn = sum(
        following[0].islower() and line.rstrip(CLOSERS)[-1:] not in SENTENCE_ENDS for line, following in pairwise(lines)
    )
    return torn > TORN_SHARE * (len(lines) - 1)
