"""A preparation that was stopped on the way goes on where it was."""

import errno
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from toy_data import toy_config

from keras_bert_impl.errors import InputError
from keras_bert_impl.training.configs import PrepareConfig
from keras_bert_impl.training.examples.block_worker import BlockWorker
from keras_bert_impl.training.prepare import prepare
from keras_bert_impl.training.unfinished import Unfinished, unfinished_output

MANY_BLOCKS = "keras_bert_impl.training.prepare.block_size"


def contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def identities(folder: Path) -> dict[str, tuple[int, int]]:
    """What changes when a file is written again, shard by shard."""
    facts = {path.relative_to(folder).as_posix(): path.stat() for path in folder.rglob("*.npy")}
    return {name: (found.st_ino, found.st_mtime_ns) for name, found in facts.items()}


def small_config(folder: Path, **settings: Any) -> PrepareConfig:
    return toy_config(folder, count=30, **{"output": str(folder / "out" / "data"), **settings})


@pytest.fixture(autouse=True)
def many_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MANY_BLOCKS, lambda size: 1500)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What comes out without an interruption."""
    folder = tmp_path_factory.mktemp("whole")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MANY_BLOCKS, lambda size: 1500)
        prepare(small_config(folder))
    return without_paths(contents(folder / "out" / "data"))


def without_paths(files: dict[str, bytes]) -> dict[str, bytes]:
    """The manifest names the input and the vocabulary, which lie elsewhere in every test."""
    manifest = json.loads(files["manifest.json"])
    manifest["files"][0]["path"] = manifest["settings"]["inputs"] = manifest["settings"]["vocab"] = ""
    return files | {"manifest.json": json.dumps(manifest).encode()}


def stop(config: PrepareConfig, monkeypatch: pytest.MonkeyPatch, error: BaseException | None = None) -> list[str]:
    """Prepares until three blocks are finished and the fourth meets an error; returns what was said."""
    said: list[str] = []
    work, calls = BlockWorker.__call__, iter(range(100))

    def stopped_at_the_fourth(self: BlockWorker, block: Any) -> Any:
        if next(calls) == 3:
            raise error or KeyboardInterrupt
        return work(self, block)

    with monkeypatch.context() as patch:
        patch.setattr(BlockWorker, "__call__", stopped_at_the_fourth)
        with pytest.raises(type(error) if error and not isinstance(error, OSError) else BaseException) as caught:
            prepare(config, say=said.append)
    return [*said, str(caught.value)]


PREPARE_SLOWLY = """
import sys; sys.path[:0] = sys.argv[2:]
import keras_bert_console
import keras_bert_impl.training.examples.worker_pool as pool, keras_bert_impl.training.prepare as room
from pathlib import Path
from toy_data import toy_config
pool._START = '''
import keras_bert_console, keras_bert_impl.training.examples.worker_pool as pool, time
work = pool.BlockWorker.__call__
def slow_from_block_3(self, block):
    if block.number >= 3:
        time.sleep(60)
    return work(self, block)
pool.BlockWorker.__call__ = slow_from_block_3
pool.serve()
'''
room.block_size = lambda size: 1500
folder = Path(sys.argv[1])
room.prepare(toy_config(folder, count=30, workers=2, output=str(folder / "out" / "data")))
"""


def test_after_kill_9_the_finished_shards_are_kept_and_the_result_is_the_same(
    tmp_path: Path, whole: dict[str, bytes]
) -> None:
    tests = str(Path(__file__).resolve().parent.parent)
    process = subprocess.Popen([sys.executable, "-c", PREPARE_SLOWLY, str(tmp_path), tests])
    hidden = tmp_path / "out" / ".data.unfinished"
    deadline = time.monotonic() + 60
    while len(list(hidden.glob("finished/*.json"))) < 3 and time.monotonic() < deadline:
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert not (tmp_path / "out" / "data").exists()
    records = [path.name for path in hidden.glob("finished/*.json")]
    before = {
        name: identity
        for name, identity in identities(hidden / "data").items()
        if f"block-{name.split('/')[0]}-{Path(name).name[:5]}.json" in records
    }
    assert len(records) >= 3 and len(before) > 5
    said: list[str] = []
    prepare(small_config(tmp_path, workers=2), say=said.append)
    (line,) = (line for line in said if line.startswith("Found finished: "))
    assert line.startswith(f"Found finished: {len(records)} blocks with ")
    assert line.endswith(" documents; their shards are not made again.")
    assert without_paths(contents(tmp_path / "out" / "data")) == whole
    assert before.items() <= identities(tmp_path / "out" / "data").items()
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["data"]


def test_ctrl_c_keeps_what_is_finished_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: dict[str, bytes]
) -> None:
    said = stop(small_config(tmp_path), monkeypatch)
    hidden = tmp_path / "out" / ".data.unfinished"
    assert f"Stopped; 3 finished parts kept in '{hidden}', where the same command goes on." in said
    prepare(small_config(tmp_path, workers=1), say=said.append)
    assert any(line.startswith("Found finished: 3 blocks with ") for line in said)
    assert without_paths(contents(tmp_path / "out" / "data")) == whole
    assert not hidden.exists()


def test_a_full_disk_keeps_what_is_finished_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: dict[str, bytes]
) -> None:
    *_, message = stop(small_config(tmp_path), monkeypatch, OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
    output, hidden = tmp_path / "out" / "data", tmp_path / "out" / ".data.unfinished"
    assert message == (
        f"`output` could not be written: No space left on device. Received: '{output}'; "
        f"3 finished parts kept in '{hidden}', where the same command goes on"
    )
    prepare(small_config(tmp_path))
    assert without_paths(contents(output)) == whole


def test_an_end_that_would_come_again_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    *_, message = stop(small_config(tmp_path), monkeypatch, InputError("`inputs` must not be so"))
    assert message == "`inputs` must not be so"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["corpus.txt", "vocab.txt"]


def test_a_stop_before_the_first_block_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Unfinished, "add", lambda self, counts: (_ for _ in ()).throw(KeyboardInterrupt))
    said: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        prepare(small_config(tmp_path), say=said.append)
    assert said[-1] == "Stopped; nothing was left behind."
    assert sorted(path.name for path in tmp_path.iterdir()) == ["corpus.txt", "vocab.txt"]


def test_two_at_once_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("keras_bert_impl.training.output_lock.PATIENCE", 0.1)
    config = small_config(tmp_path)
    with unfinished_output(config.output) as other:
        message = r"`output` must not be in use by another process\. Received: '.*data', which one is writing"
        with pytest.raises(InputError, match=message):
            prepare(config)
        other.data.mkdir()
        other.complete(other.data)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["data"]


def test_an_output_completed_while_one_waited_for_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "mine.txt").write_text("mine", encoding="utf-8")
    new = pytest.raises(InputError, match="`output` must be a new or empty directory")
    with new, unfinished_output(tmp_path / "data"):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


@pytest.mark.parametrize(
    ("changes", "difference"),
    [
        ({"seed": 2}, "with seed=1 instead of 2"),
        ({"lengths": (16,), "passes": 3}, r"with lengths=\[16, 64\] instead of \[16\], passes=1 instead of 3"),
    ],
)
def test_finished_shards_of_other_settings_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], difference: str
) -> None:
    stop(small_config(tmp_path), monkeypatch)
    before = contents(tmp_path / "out")
    with pytest.raises(InputError, match=rf"with 3 parts finished {difference}$") as caught:
        prepare(small_config(tmp_path, **changes))
    assert str(caught.value).startswith(
        "`output` must not have the finished shards of another command beside it; give that command again to go on "
        f"with it, or remove '{tmp_path / 'out' / '.data.unfinished'}'. Received: '{tmp_path / 'out' / 'data'}', "
    )
    assert contents(tmp_path / "out") == before


def change_text(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (folder / "corpus.txt").open("a", encoding="utf-8") as file:
        file.write("\nThe new ship sails.\n")


def change_vocabulary(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (folder / "vocab.txt").open("a", encoding="utf-8") as file:
        file.write("new\n")


def change_version(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("keras_bert_impl.training.prepare._VERSIONS", ("numpy",))


@pytest.mark.parametrize(
    ("change", "what"), [(change_text, "text"), (change_vocabulary, "vocabulary"), (change_version, "versions")]
)
def test_finished_shards_of_other_content_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[..., None], what: str
) -> None:
    config = small_config(tmp_path)
    stop(config, monkeypatch)
    change(tmp_path, monkeypatch)
    with pytest.raises(InputError, match=f"with 3 parts finished with other {what}$"):
        prepare(config)
    assert len(list((tmp_path / "out" / ".data.unfinished" / "finished").iterdir())) == 3


def test_shards_and_records_that_are_not_whole_are_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: dict[str, bytes]
) -> None:
    config = small_config(tmp_path)
    stop(config, monkeypatch)
    hidden = tmp_path / "out" / ".data.unfinished"
    records = sorted((hidden / "finished").iterdir())
    records[0].write_text("{", encoding="utf-8")
    _, split, number = records[1].stem.split("-")
    shard = hidden / "data" / split / "16" / f"{number}.tokens.npy"
    shard.write_bytes(shard.read_bytes()[:-1] + b"\xff")
    said: list[str] = []
    prepare(config, say=said.append)
    assert any(line.startswith("Found finished: 1 block with ") for line in said)
    assert without_paths(contents(tmp_path / "out" / "data")) == whole


def test_what_was_left_without_a_finished_block_is_no_hindrance(tmp_path: Path, whole: dict[str, bytes]) -> None:
    hidden = tmp_path / "out" / ".data.unfinished"
    (hidden / "data" / "train").mkdir(parents=True)
    (hidden / "data" / "train" / "part").write_bytes(b"x")
    (hidden / "command.json").write_text("{}", encoding="utf-8")
    (tmp_path / "out" / "data").mkdir()
    prepare(small_config(tmp_path))
    assert without_paths(contents(tmp_path / "out" / "data")) == whole


UNREADABLE = [b"", b"{", b"[]", b'"x"', b"null", b"1", b"{}", b"\xff\xfe", b"[" * 100_000, b'{"settings": []}']


def test_a_command_that_cannot_be_read_any_more_is_another_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = small_config(tmp_path)
    stop(config, monkeypatch)
    for content in UNREADABLE:
        (tmp_path / "out" / ".data.unfinished" / "command.json").write_bytes(content)
        with pytest.raises(
            InputError, match=r"with 3 parts finished (with other settings|by a command that is not known)$"
        ):
            prepare(config)
    assert len(list((tmp_path / "out" / ".data.unfinished" / "finished").iterdir())) == 3


def test_no_form_of_a_damaged_record_is_a_hindrance(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: dict[str, bytes]
) -> None:
    config = small_config(tmp_path)
    stop(config, monkeypatch)
    record, *_ = sorted((tmp_path / "out" / ".data.unfinished" / "finished").iterdir())
    content = record.read_bytes()
    digits = [place for place, byte in enumerate(content) if chr(byte).isdigit()]
    changed = [content[:place] + b"7" + content[place + 1 :] for place in digits[:: len(digits) // 20]]
    with unfinished_output(config.output) as held:
        for other in [*UNREADABLE, *(text for text in changed if text != content)]:
            record.write_bytes(other)
            assert len(list(held.blocks())) == 2
            assert not record.exists()
    prepare(config)
    assert without_paths(contents(tmp_path / "out" / "data")) == whole


def test_what_a_kill_left_of_a_half_written_file_does_not_get_into_the_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: dict[str, bytes]
) -> None:
    config = small_config(tmp_path)
    stop(config, monkeypatch)
    hidden = tmp_path / "out" / ".data.unfinished"
    for place in (hidden, hidden / "data", hidden / "data" / "train" / "16"):
        (place / ".manifest.json.abc_0123.partial").write_text("half", encoding="utf-8")
    prepare(config)
    assert without_paths(contents(tmp_path / "out" / "data")) == whole


@pytest.mark.parametrize("line", range(5))
def test_a_listener_that_has_gone_is_not_taken_for_the_output(tmp_path: Path, line: int) -> None:
    said: list[str] = []

    def say(text: str) -> None:
        said.append(text)
        if len(said) > line:
            raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))

    with pytest.raises(BrokenPipeError):
        prepare(small_config(tmp_path), say=say)
    assert len(said) == line + 1


def test_a_listener_that_goes_while_the_rest_is_made_leaves_what_is_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = small_config(tmp_path)
    stop(config, monkeypatch)

    def say(text: str) -> None:
        if text.startswith("Found finished"):
            raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        prepare(config, say=say)
    assert len(list((tmp_path / "out" / ".data.unfinished" / "finished").iterdir())) == 3


@pytest.mark.parametrize("workers", [1, 2])
def test_an_input_that_cannot_be_read_is_not_taken_for_the_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    def unreadable(*arguments: Any) -> Any:
        raise OSError(errno.EIO, os.strerror(errno.EIO))
        yield

    monkeypatch.setattr("keras_bert_impl.training.prepare.blocks_of_documents", unreadable)
    with pytest.raises(OSError, match=f"^.Errno {errno.EIO}. {os.strerror(errno.EIO)}$"):
        prepare(small_config(tmp_path, workers=workers))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["corpus.txt", "vocab.txt"]


def make_foreign_directory(hidden: Path) -> Path:
    hidden.mkdir()
    (hidden / "thesis.txt").write_text("mine", encoding="utf-8")
    return hidden


def make_foreign_file(hidden: Path) -> Path:
    hidden.write_text("mine", encoding="utf-8")
    return hidden


def make_link(hidden: Path) -> Path:
    (hidden.parent / "elsewhere" / "data").mkdir(parents=True)
    (hidden.parent / "elsewhere" / "lock").touch()
    (hidden.parent / "elsewhere" / "data" / "thesis.txt").write_text("mine", encoding="utf-8")
    hidden.symlink_to("elsewhere")
    return hidden


def make_foreign_part(hidden: Path) -> Path:
    hidden.mkdir()
    (hidden / "lock").touch()
    (hidden / "thesis.txt").write_text("mine", encoding="utf-8")
    return hidden / "thesis.txt"


def make_linked_part(hidden: Path) -> Path:
    (hidden.parent / "elsewhere").mkdir()
    hidden.mkdir()
    (hidden / "lock").touch()
    (hidden / "data").symlink_to("../elsewhere")
    return hidden / "data"


@pytest.mark.parametrize(
    "make", [make_foreign_directory, make_foreign_file, make_link, make_foreign_part, make_linked_part]
)
def test_what_is_not_ours_is_left_alone(tmp_path: Path, make: Callable[[Path], Path]) -> None:
    config = toy_config(tmp_path, count=30)
    found = make(tmp_path / ".data.unfinished")
    before = contents(tmp_path), sorted(tmp_path.rglob("*"))
    with pytest.raises(InputError) as caught:
        prepare(config)
    assert str(caught.value) == (
        f"`output` must leave '{tmp_path / '.data.unfinished'}' to what is unfinished of it; move away what is not. "
        f"Received: '{tmp_path / 'data'}', beside which there is '{found}'"
    )
    assert (contents(tmp_path), sorted(tmp_path.rglob("*"))) == before


def test_an_output_may_be_a_link_to_a_place_that_is_not_there_yet(tmp_path: Path, whole: dict[str, bytes]) -> None:
    config = toy_config(tmp_path, count=30)
    (tmp_path / "data").symlink_to("far/away")
    prepare(config)
    assert (tmp_path / "data").is_symlink()
    assert without_paths(contents(tmp_path / "far" / "away")).keys() == whole.keys()
    assert [path.name for path in (tmp_path / "far").iterdir()] == ["away"]


@pytest.mark.parametrize("output", [".", "../here", ""])
def test_the_current_directory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, output: str) -> None:
    config = toy_config(tmp_path, output=output)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with pytest.raises(InputError, match=r"`output` must not be the current directory, which"):
        prepare(config)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["corpus.txt", "here", "vocab.txt"]
