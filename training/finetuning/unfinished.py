"""Where a model is fine-tuned until it is complete: what is finished is kept for the next time.

```
.NAME.unfinished/lock           held by the process that works here
.NAME.unfinished/command.json   what the result depends on
.NAME.unfinished/runs/RUN/      one for each seed, or each seed of each point of a grid; see `one_run`
```

The directory lies beside the output. It stays after the process was killed or stopped or met a full disk, if there is
something to go on from; the same command goes on from it, another one is refused.
"""

import contextlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from keras_bert_impl.atomic import atomic_file, check_new_directory, followed, new_parents
from keras_bert_impl.errors import InputError

from ..checkpoint_manifest import DamagedError
from ..corpus.wording import size_in_words
from ..disk_space import TOO_LARGE, free_bytes, is_full_disk, is_too_large
from ..output_lock import COMMAND, LOCK, PARTIAL, clear, empty, folder_beside, foreign_in, lock_folder
from ..set_aside import SET_ASIDE
from .facts import first_difference
from .json_files import read_own_json

_RUNS = "runs"


class Unfinished:
    """A model on its way; see `unfinished_model`.

    Attributes:
        runs: where each run has its directory.
        begun: whether what is there is known to be of this command.
    """

    def __init__(self, target: Path, folder: Path) -> None:
        self._target, self._folder = target, folder
        self.runs = folder / _RUNS
        self.begun = False

    def begin(self, facts: Mapping[str, Any]) -> None:
        """Notes what the result depends on.

        Args:
            facts: JSON values by name; a dict of settings among them.

        Raises:
            InputError: if there is something to go on from that was made under other facts.
        """
        if self.has_something:
            try:
                before = read_own_json(self._folder / COMMAND)
                if before is None:
                    raise DamagedError(f"{COMMAND} is missing")
            except DamagedError as error:
                raise InputError(
                    f"`output` must have a whole {COMMAND} where it is unfinished, which tells what command it is of; "
                    f"remove {str(self._folder)!r} to begin anew. Received: {str(self._target)!r}, where {error}"
                ) from error
            if difference := first_difference(before, facts):
                raise InputError(
                    "`output` must not have the unfinished model of another command beside it; give that command again "
                    f"to go on with it, or remove {str(self._folder)!r}. Received: {str(self._target)!r}, {difference}"
                )
        else:
            empty(self._folder)
        self.runs.mkdir(exist_ok=True)
        with atomic_file(self._folder / COMMAND) as file:
            json.dump(facts, file)
        self.begun = True

    @property
    def has_something(self) -> bool:
        """Whether there is a finished run or a checkpoint."""
        return self.has_finished_run or any(self.runs.glob("*/checkpoints/step_*"))

    @property
    def has_finished_run(self) -> bool:
        """Whether there is a finished run."""
        return any(not path.parent.name.startswith(SET_ASIDE) for path in self.runs.glob("*/result.json"))

    def complete(self, model: Path) -> None:
        """Puts a model directory in the place of the output, and takes the rest away."""
        model.rename(self._target)
        self.clear()

    def clear(self) -> None:
        """Takes everything away."""
        clear(self._folder)


@contextlib.contextmanager
def unfinished_model(
    output: str | os.PathLike[str], say: Callable[[str], None] = lambda line: None
) -> Iterator[Unfinished]:
    """Holds the place where a model is made while the block runs, which ends with `Unfinished.complete`.

    If the block raises, what there is to go on from is kept; checkpoints alone are not, if the same command would come
    to the same end.

    Args:
        output: the model directory, absent or empty.
        say: takes a line on what is kept.

    Raises:
        InputError: if another process makes this output, it has content, or the disk is full.
    """
    target = followed(output).absolute()
    folder = folder_beside(target)
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(new_parents(target))
            lock = lock_folder(folder, output, _is_ours)
        except OSError as error:
            raise InputError(
                "`output` must be where a directory can be made. "
                f"Received: {str(output)!r}, where the system says: {error.strerror}"
            ) from error
        unfinished = Unfinished(target, folder)
        try:
            check_new_directory(output, "output")  # Once more: another process may have completed it just now.
            yield unfinished
        except BaseException as error:
            full = isinstance(error, Exception) and not isinstance(error, InputError) and is_full_disk(error)
            refused = isinstance(error, InputError) and unfinished.begun
            if not unfinished.has_something or (refused and not unfinished.has_finished_run):
                unfinished.clear()
            elif refused:
                say(f"What is finished is kept in {str(folder)!r}, from where the same command goes on.")
            if full:
                free = f"where {size_in_words(free_bytes(target))} are free"
                raise InputError(
                    "`output` must have room on its disk; nothing was left half-written, and once there is room the "
                    f"same command goes on. Received: {str(output)!r}, {TOO_LARGE if is_too_large(error) else free}"
                ) from error
            raise
        finally:
            os.close(lock)


def clear_leftovers(output: str | os.PathLike[str]) -> None:
    """Takes away what a kill in the last moment leaves beside a model that is complete."""
    folder = folder_beside(followed(output).absolute())
    if not folder.is_dir() or foreign_in(folder, _is_ours):
        return
    with contextlib.suppress(InputError):
        lock = lock_folder(folder, output, _is_ours, patience=0)
        Unfinished(folder, folder).clear()
        os.close(lock)


def _is_ours(path: Path) -> bool:
    return path.name in (COMMAND, LOCK, _RUNS) or PARTIAL.fullmatch(path.name) is not None
