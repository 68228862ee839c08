"""An output that is made in many parts and may be stopped on the way: the finished parts are kept for the next time.

```
.NAME.unfinished/lock           held by the process that works here
.NAME.unfinished/command.json   what the result depends on
.NAME.unfinished/finished/      a record of each finished part
.NAME.unfinished/data/          the shards of prepared data
.NAME.unfinished/records/       TFRecord files, if they are wanted
```

One of the last two becomes NAME when all is done. The directory lies beside the output and there is one for each. It
stays after the process was killed or interrupted or met a full disk, if a part was finished by then; the same command
goes on from it, another one is refused. Where anything else lies in its place, that is refused and left alone.
"""

import contextlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from keras_bert_impl.atomic import atomic_file, check_new_directory, followed, new_parents
from keras_bert_impl.errors import InputError

from .corpus.wording import counted
from .examples.block_records import read_counts, read_record, to_plain, write_record
from .examples.block_worker import BlockCounts
from .examples.worker_pool import StoppedError
from .output_errors import writing
from .output_lock import COMMAND, LOCK, PARTIAL, clear, empty, folder_beside, lock_folder, take_away

_FINISHED, _DATA, _RECORDS = "finished", "data", "records"


class Unfinished:
    """The parts of an output that are finished so far; see `unfinished_output`.

    Attributes:
        data: directory for shards.
        records: directory for TFRecord files.
        lock: descriptor of the lock, for the workers to hold as well.
        begun: whether the finished parts are known to be of this command.
    """

    def __init__(self, target: Path, folder: Path, lock: int):
        self._target, self._folder, self.lock = target, folder, lock
        self._finished = folder / _FINISHED
        self.data = folder / _DATA
        self.records = folder / _RECORDS
        self.begun = False

    def check(self, facts: Mapping[str, Any]) -> None:
        """Refuses the finished parts of another command.

        Args:
            facts: what the result depends on, as JSON values: one of `settings`, and digests. Those that are not
                known yet may be missing.

        Raises:
            InputError: if parts were finished under other facts.
        """
        if not (finished := self.finished):
            return
        try:
            before = json.loads((self._folder / COMMAND).read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            before = None
        for name, value in facts.items():
            if difference := _difference(name, before, value):
                raise InputError(
                    "`output` must not have the finished shards of another command beside it; give that command "
                    f"again to go on with it, or remove {str(self._folder)!r}. Received: {str(self._target)!r}, with "
                    f"{counted(finished, 'part')} finished {difference}"
                )

    @writing()
    def begin(self, facts: Mapping[str, Any]) -> None:
        """Notes what the result depends on; with other finished parts there it raises what `check` does."""
        self.check(facts)
        if not self.finished:
            empty(self._folder, first=_FINISHED)
        for folder in (self._finished, self.data, self.records):
            folder.mkdir(exist_ok=True)
            for path in [path for path in folder.rglob("*") if PARTIAL.fullmatch(path.name)]:
                take_away(path)
        with atomic_file(self._folder / COMMAND) as file:
            json.dump(facts, file)
        self.begun = True

    @property
    def finished(self) -> int:
        """Number of parts with a record."""
        return sum(1 for _ in self._finished.glob("*.json"))

    def blocks(self) -> Iterator[BlockCounts]:
        """Yields the counts of the finished blocks; records of shards that are not whole are taken away."""
        for path in sorted(self._finished.glob("block-*.json")):
            counts = read_counts(path, self._folder)
            if counts is None:
                with writing():
                    take_away(path)
            else:
                yield counts

    @writing()
    def add(self, counts: BlockCounts) -> None:
        """Notes that a block is finished."""
        folders = [self.data / counts.split / str(length) for length in counts.lengths]
        shards = [path for folder in folders for path in sorted(folder.glob(f"{counts.number:05d}.*"))]
        path = self._finished / f"block-{counts.split}-{counts.number:05d}.json"
        write_record(path, to_plain(counts), self._folder, shards)

    @writing()
    def note(self, part: str, facts: Any, files: Iterable[Path]) -> None:
        """Notes that a part other than a block is finished.

        Args:
            part: its name.
            facts: what is to be known of it, as JSON values.
            files: those in `data` or `records` that belong to it.
        """
        write_record(self._finished / f"{part}.json", facts, self._folder, files)

    def noted(self, part: str) -> Any:
        """Returns what was noted of a part; None if it is not finished or its files are not what they were."""
        return read_record(self._finished / f"{part}.json", self._folder)

    @writing()
    def complete(self, directory: Path) -> None:
        """Puts `data` or `records` in the place of the output and takes the rest away."""
        directory.rename(self._target)
        self.clear()

    def clear(self) -> None:
        """Takes everything away."""
        # Without their records, what a kill in the middle leaves is not taken for finished.
        clear(self._folder, first=_FINISHED)

    def what_is_kept(self) -> str:
        """Returns a clause on what a next time finds."""
        if not (finished := self.finished):
            return "nothing was left behind"
        return f"{counted(finished, 'finished part')} kept in {str(self._folder)!r}, where the same command goes on"


@contextlib.contextmanager
def unfinished_output(path: str | os.PathLike[str]) -> Iterator[Unfinished]:
    """Holds the place where an output is made while the block runs, which ends with `Unfinished.complete`.

    If the block raises, finished parts are kept, unless by an `InputError` other than `StoppedError`: the same
    command would come to the same end.

    Args:
        path: the output, absent or an empty directory. Missing parents are created, and removed again on failure
            if nothing is kept.

    Raises:
        InputError: if another process makes this output, it has content, or what lies at the place of its
            unfinished parts is something else.
    """
    target = followed(path).absolute()
    folder = folder_beside(target)
    with new_parents(target):
        lock = lock_folder(folder, path, _is_ours)
        unfinished = Unfinished(target, folder, lock)
        try:
            check_new_directory(path, "output")  # Once more: another process may have completed it just now.
            yield unfinished
        except BaseException as error:
            final = isinstance(error, InputError) and not isinstance(error, StoppedError)
            if not unfinished.finished or (final and unfinished.begun):
                unfinished.clear()
            raise
        finally:
            os.close(lock)


def _is_ours(path: Path) -> bool:
    if path.is_symlink():
        return False
    if path.name in (_FINISHED, _DATA, _RECORDS):
        return not path.is_file()
    return (path.name in (COMMAND, LOCK) or PARTIAL.fullmatch(path.name) is not None) and not path.is_dir()


def _difference(name: str, facts: Any, now: Any) -> str:
    """Returns a clause on how a fact differs from what was noted, an empty one if it does not."""
    if not isinstance(facts, dict):
        return "by a command that is not known"
    before = facts.get(name)
    if before == now:
        return ""
    if name != "settings" or not isinstance(before, dict):
        return f"with other {name}"
    parts = [
        f"{key}={before.get(key)!r} instead of {now.get(key)!r}"
        for key in {**now, **before}
        if before.get(key) != now.get(key)
    ]
    return "with " + ", ".join(parts)
