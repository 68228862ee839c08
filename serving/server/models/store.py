"""Which versions of which models are there, and which of them are served."""

import contextlib
import dataclasses
import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Literal

from keras_bert_impl.errors import InputError

from ...version_status import VersionStatus
from ..request_error import RequestError
from . import freed_memory
from .load_error import LoadError
from .loaded_version import LoadedVersion
from .version_directory import Contents, contents, version_directories

State = Literal["START", "LOADING", "AVAILABLE", "UNLOADING", "END"]

_log = logging.getLogger(__name__)


@dataclasses.dataclass
class _Version:
    number: int
    contents: Contents
    state: State = "LOADING"
    code: str = "OK"
    message: str = ""
    error: LoadError | None = None
    servable: LoadedVersion | None = None
    leases: int = 0


class _Model:
    def __init__(self, name: str, directory: Path) -> None:
        self.name = name
        self.directory = directory
        self.versions: dict[int, _Version] = {}
        self.current: _Version | None = None
        # What was seen of versions that are not loaded yet: only what holds still is loaded.
        self.seen: dict[int, Contents] = {}
        self.was_gone = False


class ModelStore:
    """Serves of every model the highest version that can be loaded, and looks for new ones.

    As TensorFlow Serving does by default: a new version is loaded and has answered its warm-up requests before it
    takes the place of the old one, which is freed when the last request that it has begun is answered. A version that
    cannot be loaded is reported, and tried again when its files change; the old one stays. A version whose directory
    is removed goes when another has taken its place, or when no version is left.

    Args:
        models: directory of numbered version directories, by the model's name.
        load: makes a loaded version, which must be ready to answer, of a model's name and a version directory; raises
            `LoadError`.
        poll_seconds: how long to wait between two looks into the directories.
        say: receives the lines for the user.
    """

    def __init__(
        self,
        models: Mapping[str, Path],
        *,
        load: Callable[[str, Path], LoadedVersion],
        poll_seconds: float = 1.0,
        say: Callable[[str], None] = lambda line: None,
    ) -> None:
        self._models = {name: _Model(name, directory) for name, directory in models.items()}
        self._load = load
        self._poll_seconds = poll_seconds
        self._say = say
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._interrupted = False
        self._freed = False
        self._thread = threading.Thread(target=self._poll, name="keras-bert-models", daemon=True)

    def start(self) -> None:
        """Loads a version of every model, then goes on looking for new ones in a thread.

        Raises:
            InputError: if a model has no version that can be loaded.
        """
        for model in self._models.values():
            self._look(model, first=True)
            if model.current is None and not self._interrupted:
                raise _nothing_to_serve(model)
        if not self._interrupted:
            self._thread.start()

    def interrupt(self) -> None:
        """Lets `start` return as soon as the version that it is loading has been loaded; for signal handlers."""
        self._interrupted = True

    def close(self) -> None:
        """Ends the looking, and frees each version when its last request is answered."""
        self._interrupted = True
        self._closing.set()
        if self._thread.is_alive():
            self._thread.join()
        for model in self._models.values():
            if model.current is not None:
                self._retire(model, model.current)

    @property
    def names(self) -> list[str]:
        """The models' names, in the order given."""
        return list(self._models)

    @property
    def ready(self) -> bool:
        """Whether every model has a version that is served."""
        with self._lock:
            return all(model.current is not None for model in self._models.values())

    def status(self, name: str, version: int | None = None) -> list[VersionStatus]:
        """Returns what is known of a model's versions, the highest first.

        Args:
            name: the model's.
            version: the only one that is asked about.

        Raises:
            RequestError: `NOT_FOUND`, if there is no such model or version.
        """
        found = [known for known in self.known(name) if version in (None, known.version)]
        if not found:
            missing = "any versions" if version is None else f"version {version}"
            raise RequestError(f"Could not find {missing} of model {name}", "NOT_FOUND")
        return found

    def known(self, name: str) -> list[VersionStatus]:
        """Returns the same without an error: nothing for a model that is not there."""
        with self._lock:
            model = self._models.get(name)
            versions = [] if model is None else sorted(model.versions.values(), key=lambda known: -known.number)
            return [VersionStatus(known.number, known.state, known.code, known.message) for known in versions]

    @contextlib.contextmanager
    def lease(self, name: str, version: int | None = None) -> Iterator[LoadedVersion]:
        """Yields the version that is served, which stays loaded inside the block.

        Args:
            name: the model's.
            version: the number that it must have, if given.

        Raises:
            RequestError: `NOT_FOUND`, if there is no such model or another version is served.
        """
        with self._lock:
            model = self._models.get(name)
            leased = None if model is None else model.current
            if model is None or leased is None or leased.servable is None or version not in (None, leased.number):
                wanted = f"Latest({name})" if version is None else f"Specific({name}, {version})"
                raise RequestError(f"Servable not found for request: {wanted}", "NOT_FOUND")
            leased.leases += 1
            servable = leased.servable
        try:
            yield servable
        finally:
            with self._lock:
                leased.leases -= 1
            self._free_if_unused(leased)

    # ------------------------------------------------------------------------------------ looking and loading

    def _poll(self) -> None:
        while not self._closing.wait(self._poll_seconds):
            if self._freed:
                self._freed = False
                freed_memory.give_back()
            for model in self._models.values():
                try:
                    self._look(model)
                except Exception:
                    # What is served stays served, and the next look may go better.
                    _log.exception("Looking for versions of %s failed", model.name)

    def _look(self, model: _Model, first: bool = False) -> None:
        try:
            found = version_directories(model.directory)
        except OSError as error:
            if not first:
                return  # unreadable for the moment; nothing is known to be gone
            raise InputError(f"{str(model.directory)!r} cannot be read: {error.strerror}") from error
        self._forget(model, found)
        current = model.current
        for number in sorted(found, reverse=True):
            if (current is not None and number == current.number) or self._interrupted:
                return
            if self._took_over(model, number, found[number], at_once=first or current is None):
                return
        if current is not None and not found:
            # Twice in a row, so that a directory that is being exchanged is not taken for an empty one.
            if model.was_gone:
                self._retire(model, current)
                self._say(f"Version {current.number} of {model.name} is no longer served: its directory is gone.")
            model.was_gone = not model.was_gone
        else:
            model.was_gone = False

    def _forget(self, model: _Model, found: Mapping[int, Path]) -> None:
        with self._lock:
            for number in [number for number, known in model.versions.items() if known.state == "END"]:
                if number not in found:
                    del model.versions[number]
        for number in model.seen.keys() - found.keys():
            del model.seen[number]

    def _took_over(self, model: _Model, number: int, directory: Path, at_once: bool) -> bool:
        """Loads a version and serves it; returns whether that went well."""
        try:
            now = contents(directory)
        except OSError:
            return False  # it is being written or removed
        known = model.versions.get(number)
        if known is not None and known.error is not None and known.contents == now:
            return False
        if not at_once and model.seen.get(number) != now:
            model.seen[number] = now
            return False
        version = _Version(number, now)
        with self._lock:
            model.versions[number] = version
        try:
            version.servable = self._loaded(model, directory, now)
        except LoadError as error:
            # Not the error itself: by its traceback it keeps what was loaded.
            version.error = LoadError(str(error), error.reason, error.code)
            with self._lock:
                version.state, version.code, version.message = "END", error.code, error.reason
            self._freed = True
            self._say(f"Version {number} of {model.name} is not served. {error}")
            return False
        before = model.current
        with self._lock:
            version.state = "AVAILABLE"
            model.current = version
        if before is not None:
            self._retire(model, before)
            self._say(f"Version {number} of {model.name} is served in place of version {before.number}.")
        return True

    def _loaded(self, model: _Model, directory: Path, before: Contents) -> LoadedVersion:
        try:
            servable = self._load(model.name, directory)
        except LoadError:
            raise
        except Exception as error:
            _log.exception("Loading %s failed", directory)
            raise _load_error(directory, f"loading failed with {type(error).__name__}", "INTERNAL") from error
        with contextlib.suppress(OSError):
            if contents(directory) == before:
                return servable
        servable.close()
        raise _load_error(directory, "its files changed while they were read", "ABORTED")

    def _retire(self, model: _Model, version: _Version) -> None:
        with self._lock:
            version.state = "UNLOADING"
            if model.current is version:
                model.current = None
        self._free_if_unused(version)

    def _free_if_unused(self, version: _Version) -> None:
        with self._lock:
            if version.state != "UNLOADING" or version.leases or version.servable is None:
                return
            servable, version.servable = version.servable, None
        servable.close()
        with self._lock:
            version.state = "END"
        self._freed = True


def _load_error(directory: Path, reason: str, code: str) -> LoadError:
    sentence = "The SavedModel{} cannot be loaded: {}"
    return LoadError(sentence.format(f" in {str(directory)!r}", reason), sentence.format("", reason), code)


def _nothing_to_serve(model: _Model) -> InputError:
    if model.versions:
        error = model.versions[max(model.versions)].error
        if error is not None:
            return error
    return InputError(
        f"`export_dir` must hold numbered version directories, each with a saved_model.pb. "
        f"Received: {str(model.directory)!r}"
    )
