"""How much room a run needs on its disk, from its settings alone, and whether there is so much."""

import contextlib
import dataclasses
import errno
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from keras_bert_impl.config import BertConfig
from keras_bert_impl.errors import InputError

from .configs import PretrainConfig
from .corpus.wording import size_in_words
from .set_aside import SET_ASIDE

TOO_LARGE = "a file larger than the system lets this process write (`ulimit -f`) or the disk can hold"

# Variables are float32 under every policy. Both optimizers keep two running means of every weight.
_WEIGHT = 4
_MEANS = 2
# Of a logged step, in metrics.jsonl and for TensorBoard together; seen: 0.6 and 1.9 kB.
_LINE = 3_000
# Names, shapes, manifests, settings, vocabulary and the report.
_REST = 5_000_000


@dataclasses.dataclass(frozen=True)
class RunSize:
    """Bytes that a run takes on the disk when it takes most.

    Attributes:
        parameters: number of trained values.
        checkpoint: bytes of a checkpoint.
        checkpoints: number of checkpoints: those kept, the best, and one being written.
        model: bytes of a model directory, of which there are two while one takes the other's place.
        logs: bytes of all that grows with the steps.
    """

    parameters: int
    checkpoint: int
    checkpoints: int
    model: int
    logs: int

    @property
    def total(self) -> int:
        """Bytes altogether."""
        return self.checkpoints * self.checkpoint + 2 * self.model + self.logs + _REST


def count_parameters(model: BertConfig, *, next_sentence: bool = True) -> int:
    """Returns how many values the variables of a `BertPretrainer` hold, or without `next_sentence` a `BertMaskedLM`."""
    width, inner = model.hidden_size, model.intermediate_size
    rows = model.vocab_size + model.max_position_embeddings + model.type_vocab_size
    norm, dense = 2 * width, width * width + width
    embeddings = rows * width + norm
    block = 4 * dense + 2 * width * inner + inner + width + 2 * norm
    masked_lm_head = dense + norm + model.vocab_size
    pooler_and_next_sentence_head = dense + 2 * width + 2
    return (
        embeddings
        + model.num_hidden_layers * block
        + masked_lm_head
        + (pooler_and_next_sentence_head if next_sentence else 0)
    )


def run_size(config: PretrainConfig, model: BertConfig, *, next_sentence: bool = True) -> RunSize:
    """Returns what a run will take on the disk.

    Args:
        config: the settings, with a value for `log_every`.
        model: the model's configuration.
        next_sentence: whether the data has next-sentence labels.
    """
    parameters = count_parameters(model, next_sentence=next_sentence)
    return RunSize(
        parameters=parameters,
        checkpoint=(1 + _MEANS) * _WEIGHT * parameters,
        checkpoints=config.keep_checkpoints + 2,
        model=_WEIGHT * parameters,
        logs=config.total_steps // (config.log_every or 1) * _LINE,
    )


def check_room(directory: Path, size: RunSize) -> None:
    """Checks that what a run will take on the disk is free, or taken by this run already.

    Args:
        directory: the run directory; it need not exist.
        size: what the run takes altogether.

    Raises:
        InputError: if it is not.
    """
    missing = size.total - _taken(directory)
    if missing > (free := free_bytes(directory)):
        raise InputError(
            f"`run` must be on a disk with room for the run, {size_in_words(missing)}: {size.checkpoints} checkpoints "
            f"of {size_in_words(size.checkpoint)} ({size.parameters:,} parameters with two running means each), two "
            f"models of {size_in_words(size.model)}, and logs of {size_in_words(size.logs)}"
            f"{', less what is there already' if missing < size.total else ''}; a lower `keep_checkpoints` needs less. "
            f"Received: {str(directory)!r}, where {size_in_words(free)} are free"
        )


def free_bytes(path: Path) -> int:
    """Returns the bytes that are free for this user where a path is or will be."""
    there = next(place for place in (path, *path.absolute().parents) if place.exists())
    return shutil.disk_usage(there).free


def is_full_disk(error: BaseException) -> bool:
    """Returns whether an error, of the system or of a library that met it, says that a disk or quota is full.

    A file that is larger than the system lets this process write, or than the disk can hold, counts as well.
    """
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return True
    return is_too_large(error) or any(words in str(error) for words in ("No space left on device", "Disk quota exceed"))


def is_too_large(error: BaseException) -> bool:
    """Returns whether an error says that a file was larger than this process may write or the disk can hold."""
    return (isinstance(error, OSError) and error.errno == errno.EFBIG) or "File too large" in str(error)


@contextlib.contextmanager
def plain_full_disk(directory: Path, saved_steps: Callable[[], Sequence[int]]) -> Iterator[None]:
    """Says in a sentence what becomes of a run that meets a full disk in the block.

    Args:
        directory: the run directory.
        saved_steps: returns the steps that have a checkpoint, in order.

    Raises:
        InputError: in the place of any error that means a full disk.
    """
    try:
        yield
    except Exception as error:
        if isinstance(error, InputError) or not is_full_disk(error):
            raise
        steps = saved_steps()
        place = f" at {error.filename!r}" if isinstance(error, OSError) and error.filename else ""
        fault = TOO_LARGE if is_too_large(error) else "no space left"
        raise InputError(
            "`run` must have room on its disk; nothing was left half-written, and once there is room the same command "
            f"goes on from {f'the checkpoint of step {steps[-1]}' if steps else 'the beginning'}. "
            f"Received: {str(directory)!r}, {fault}{place}, {size_in_words(free_bytes(directory))} free"
        ) from error


def _taken(directory: Path) -> int:
    """Returns the bytes that a run has written, without checkpoints set aside, which no new one takes the place of."""
    files = [path for path in directory.rglob("*") if path.is_file() and not path.is_symlink()]
    return sum(file.stat().st_size for file in files if not file.parent.name.startswith(SET_ASIDE))
