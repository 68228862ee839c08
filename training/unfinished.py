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
goes on from it, another one is refused.
"""

import contextlib
import fcntl
import json
import os
import shutil
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from keras_bert_impl.atomic import atomic_file, check_new_directory, followed, new_parents
from keras_bert_impl.errors import InputError

from .corpus.wording import counted
from .examples.block_records import read_record, write_record
from .examples.block_worker import BlockCounts
from .examples.worker_pool import StoppedError

_COMMAND, _LOCK = "command.json", "lock"
# The workers of a process that was killed let go of the lock in moments.
_PATIENCE = 1.0


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
        self._finished = folder / "finished"
        self.data = folder / "data"
        self.records = folder / "records"
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
            before = json.loads((self._folder / _COMMAND).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            before = {}
        for name, value in facts.items():
            if difference := _difference(name, before.get(name), value):
                raise InputError(
                    "`output` must not have the finished shards of another command beside it; give that command "
                    f"again to go on with it, or remove {str(self._folder)!r}. Received: {str(self._target)!r}, with "
                    f"{counted(finished, 'part')} finished {difference}"
                )

    def begin(self, facts: Mapping[str, Any]) -> None:
        """Notes what the result depends on; with other finished parts there it raises what `check` does."""
        self.check(facts)
        if not self.finished:
            self._empty()
        for folder in (self._finished, self.data, self.records):
            folder.mkdir(exist_ok=True)
        with atomic_file(self._folder / _COMMAND) as file:
            json.dump(facts, file)
        self.begun = True

    @property
    def finished(self) -> int:
        """Number of parts with a record."""
        return sum(1 for _ in self._finished.glob("*.json"))

    def blocks(self) -> Iterator[BlockCounts]:
        """Yields the counts of the finished blocks; records of shards that are not whole are taken away."""
        for path in sorted(self._finished.glob("block-*.json")):
            counts = read_record(path, self.data)
            if counts is None:
                path.unlink()
            else:
                yield counts

    def add(self, counts: BlockCounts) -> None:
        """Notes that a block is finished."""
        folders = [self.data / counts.split / str(length) for length in counts.lengths]
        shards = [path for folder in folders for path in sorted(folder.glob(f"{counts.number:05d}.*"))]
        path = self._finished / f"block-{counts.split}-{counts.number:05d}.json"
        write_record(path, counts, self.data, shards)

    def note(self, part: str, facts: Any) -> None:
        """Notes that a part other than a block is finished, with what is to be known of it as JSON values."""
        with atomic_file(self._finished / f"{part}.json") as file:
            json.dump(facts, file)

    def noted(self, part: str) -> Any:
        """Returns what was noted of a part; None if it is not finished."""
        path = self._finished / f"{part}.json"
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None

    def complete(self, directory: Path) -> None:
        """Puts `data` or `records` in the place of the output and takes the rest away."""
        directory.rename(self._target)
        self.clear()

    def clear(self) -> None:
        """Takes everything away."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def what_is_kept(self) -> str:
        """Returns a clause on what a next time finds."""
        if not (finished := self.finished):
            return "nothing was left behind"
        return f"{counted(finished, 'finished part')} kept in {str(self._folder)!r}, where the same command goes on"

    def _empty(self) -> None:
        for path in self._folder.iterdir():
            if path.name != _LOCK:
                shutil.rmtree(path) if path.is_dir() else path.unlink()


@contextlib.contextmanager
def unfinished_output(path: str | os.PathLike[str]) -> Iterator[Unfinished]:
    """Holds the place where an output is made while the block runs, which ends with `Unfinished.complete`.

    If the block raises, finished parts are kept, unless by an `InputError` other than `StoppedError`: the same
    command would come to the same end.

    Args:
        path: the output, absent or an empty directory. Missing parents are created, and removed again on failure
            if nothing is kept.

    Raises:
        InputError: if another process makes this output, or it has content.
    """
    target = followed(path).absolute()  # "." has a name then, too
    folder = target.parent / f".{target.name}.unfinished"
    with new_parents(target):
        lock = _lock(folder, path)
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


def _lock(folder: Path, path: str | os.PathLike[str]) -> int:
    deadline = time.monotonic() + _PATIENCE
    while True:
        folder.mkdir(exist_ok=True)
        try:
            lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o666)
        except FileNotFoundError:  # Cleared by another process between the two lines.
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_at(lock, folder / _LOCK):
                return lock
        except BlockingIOError:
            if time.monotonic() > deadline:
                os.close(lock)
                raise InputError(
                    f"`output` must not be in use by another process. Received: {str(path)!r}, which one is writing"
                ) from None
        except BaseException:
            os.close(lock)
            raise
        os.close(lock)
        time.sleep(0.02)


def _is_at(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False


def _difference(name: str, before: Any, now: Any) -> str:
    """Returns a clause on how a fact differs, an empty one if it does not."""
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
