"""Settings of `vocab`."""

import dataclasses

from keras_bert_impl.errors import InputError

from .reading import INPUTS, check_reading, reading_field
from .settings import ANY, Settings, check_defaults, check_range, list_of_files, setting


@dataclasses.dataclass(frozen=True, kw_only=True)
class VocabConfig(Settings):
    """Learn a WordPiece vocabulary from text, or add the words that one lacks."""

    inputs: tuple[str, ...] = setting(help=INPUTS)
    output: str = setting(help="vocabulary file to write, one token per line")
    size: int = setting(30522, help="number of tokens, the special ones included")
    cased: bool = setting(False, help="keep upper case and accents")
    min_frequency: int = setting(2, help="a pair of pieces is merged, or a word added, only if it occurs this often")
    unused: int = setting(0, help="slots [unused0], [unused1], … to keep free, after [PAD]; 99 in the released ones")
    character_coverage: float = setting(1.0, help="share of the text whose characters get tokens, the commonest first")
    extend: str | None = setting(
        None, help="vocabulary file, or a model directory that has one: keep its tokens and add words at its end"
    )
    add: int | None = setting(
        None, help="extend: number of words to add, the commonest that it cuts into pieces or does not know"
    )
    input_format: str = reading_field("input_format")
    documents: str = reading_field("documents")
    text_field: str = reading_field("text_field")
    on_bad_bytes: str = reading_field("on_bad_bytes")
    max_document_chars: int = reading_field("max_document_chars")

    def __post_init__(self) -> None:
        object.__setattr__(self, "inputs", list_of_files("inputs", self.inputs))
        check_reading(self)
        check_range(self, "size", 6, ANY)
        check_range(self, "min_frequency", 1, ANY)
        check_range(self, "unused", 0, ANY)
        check_range(self, "character_coverage", 0, 1, low_open=True)
        if (self.extend is None) != (self.add is None):
            raise InputError(f"`extend` and `add` must go together. Received: extend={self.extend!r}, add={self.add!r}")
        if self.extend is not None:
            check_range(self, "add", 1, ANY)
            check_defaults(self, ("size", "unused", "character_coverage"), "`extend`")
