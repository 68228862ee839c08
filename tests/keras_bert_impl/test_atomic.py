"""Outputs appear whole or not at all."""

import contextlib
import errno
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from keras_bert_impl import InputError, atomic
from keras_bert_impl.atomic import atomic_directory, atomic_file, atomic_path, check_new_directory


def test_a_file_appears_only_when_the_block_ends_well(tmp_path):
    target = tmp_path / "new" / "file.txt"
    with pytest.raises(RuntimeError), atomic_file(target) as file:
        file.write("half")
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []
    with atomic_file(target) as file:
        file.write("whole")
        assert not target.exists()
    assert target.read_text() == "whole"
    assert [path.name for path in target.parent.iterdir()] == ["file.txt"]


def test_an_old_file_stays_when_the_block_fails(tmp_path):
    target = tmp_path / "file.txt"
    target.write_text("old")
    with pytest.raises(RuntimeError), atomic_file(target):
        raise RuntimeError
    assert target.read_text() == "old"


def test_devices_and_pipes_are_never_replaced(tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    for path in (fifo, tmp_path):
        with pytest.raises(InputError, match="must be new or a regular file"), atomic_file(path):
            pass
    assert stat.S_ISFIFO(fifo.stat().st_mode)


def test_a_link_is_followed(tmp_path):
    target, link = tmp_path / "target.txt", tmp_path / "link"
    target.write_text("old")
    link.symlink_to(target)
    with atomic_file(link) as file:
        file.write("new")
    assert link.is_symlink() and target.read_text() == "new"


@pytest.mark.parametrize("at_one_stroke", [True, False])
def test_a_directory_is_swapped_whole(tmp_path, monkeypatch, at_one_stroke):
    if not at_one_stroke:
        monkeypatch.setattr(atomic, "_exchange", lambda one, other: False)
    target = tmp_path / "model"
    for content in ("first", "second"):
        with atomic_directory(target, replace=True) as temporary:
            (temporary / "weights").write_text(content)
        assert (target / "weights").read_text() == content
        assert [path.name for path in tmp_path.iterdir()] == ["model"]
    with pytest.raises(InputError, match="must not come to be there"), atomic_directory(target) as temporary:
        (temporary / "weights").write_text("third")
    assert (target / "weights").read_text() == "second"
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_where_a_place_was_taken_meanwhile_another_may_be_named(tmp_path):
    places = iter([tmp_path / "2", tmp_path / "3"])
    with atomic_directory(tmp_path / "1", if_taken=lambda: next(places)) as mine:
        (mine / "whose").write_text("mine")
        for number in ("1", "2"):
            with atomic_directory(tmp_path / number) as other:
                (other / "whose").write_text("other")
    assert {path.name: (path / "whose").read_text() for path in tmp_path.iterdir()} == {
        "1": "other",
        "2": "other",
        "3": "mine",
    }


_AT_WORK = """
import pathlib, sys, time
from keras_bert_impl.atomic import atomic_directory
with atomic_directory(pathlib.Path(sys.argv[1])) as folder:
    (folder / "half").touch()
    print(folder, flush=True)
    time.sleep(60)
"""


def test_work_of_a_living_process_is_left_alone_and_of_a_killed_one_cleared(tmp_path):
    command = [sys.executable, "-c", _AT_WORK, str(tmp_path / "1")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        its = Path(process.stdout.readline().strip())
        with contextlib.suppress(RuntimeError), atomic_directory(tmp_path / "1"):
            raise RuntimeError
        assert (its / "half").exists()
        process.kill()
        process.wait()
    assert its.exists()
    with atomic_directory(tmp_path / "1"):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["1"]


def test_what_a_kill_between_two_renames_left_is_mended(tmp_path):
    old = tmp_path / ".model.abc_0123.old"
    old.mkdir()
    (old / "weights").write_text("last")
    (tmp_path / ".model.xyz_0123.partial").mkdir()
    with pytest.raises(RuntimeError), atomic_directory(tmp_path / "model", replace=True):
        assert (tmp_path / "model" / "weights").read_text() == "last"
        raise RuntimeError
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_a_directory_with_content_is_refused(tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis").touch()
    with pytest.raises(InputError, match="`output` must be a new or empty directory"):
        check_new_directory(tmp_path / "full", "output")
    with pytest.raises(InputError, match="`output` must be a new or empty directory"):
        check_new_directory(tmp_path / "full" / "thesis", "output")
    assert check_new_directory(tmp_path / "new", "output") == tmp_path / "new"


@pytest.mark.parametrize("one,other", [("bert", "bert.v2"), ("[a]*", "aa"), ("m", "m.abc")])
def test_writing_one_directory_leaves_the_work_of_another_alone(tmp_path, one, other):
    with atomic_directory(tmp_path / other, replace=True) as folder:
        (folder / "a").write_text("")
        with atomic_directory(tmp_path / one, replace=True):
            pass
    assert (tmp_path / other / "a").exists()


def test_what_a_killed_process_left_of_a_file_is_cleared_next_time(tmp_path):
    (tmp_path / ".m.keras.abcdefgh.partial").mkdir()
    with atomic_path(tmp_path / "m.keras") as path:
        path.write_text("whole")
    assert [entry.name for entry in tmp_path.iterdir()] == ["m.keras"]
    with pytest.raises(RuntimeError), atomic_path(tmp_path / "m.keras") as path:
        path.write_text("half")
        raise RuntimeError
    assert (tmp_path / "m.keras").read_text() == "whole"
    assert [entry.name for entry in tmp_path.iterdir()] == ["m.keras"]


def test_what_hinders_a_new_directory_is_said_as_it_is(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    (tmp_path / "one").symlink_to("other")
    (tmp_path / "other").symlink_to("one")
    (tmp_path / "volume").mkdir()
    (tmp_path / "to-volume").symlink_to("volume")
    monkeypatch.setattr(os.path, "ismount", lambda path: Path(path).name == "volume")
    for name, message in {
        "file": r"`output` must be a new or empty directory\. Received: '.*file', which is no directory$",
        "one": r"`output` must be a new or empty directory\. Received: '.*one', a link that leads in a circle$",
        "volume": r"`output` must not be a mount point, which cannot be replaced; name a new .* Received: '.*/volume'$",
        "to-volume": r"`output` must not be a mount point, .* Received: '.*/to-volume'$",
    }.items():
        with pytest.raises(InputError, match=message):
            check_new_directory(tmp_path / name, "output")
    with pytest.raises(InputError, match="An output directory must not be a mount point"):  # noqa: SIM117
        with atomic_directory(tmp_path / "volume"):
            pytest.fail("The work began.")


def test_a_link_to_a_place_that_is_not_there_yet_is_a_new_directory(tmp_path):
    (tmp_path / "link").symlink_to("far/away")
    assert check_new_directory(tmp_path / "link", "output") == tmp_path / "link"


def test_the_current_directory_is_not_replaced(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for place in (".", "", tmp_path):
        with pytest.raises(InputError, match=r"`output` must not be the current directory, which would be replaced"):
            check_new_directory(place, "output")


def test_everything_is_on_the_disk_before_it_takes_its_name(tmp_path, monkeypatch):
    done = []
    monkeypatch.setattr(atomic, "to_disk", lambda path: done.append((path.name, (tmp_path / "out").exists())))
    with atomic_directory(tmp_path / "out") as folder:
        (folder / "inner").mkdir()
        (folder / "inner" / "file").write_text("1")
    assert done == [("inner", False), ("file", False), (folder.name, False), (tmp_path.name, True)]


@pytest.mark.parametrize(("number", "raised"), [(errno.EINVAL, False), (errno.ENOTSUP, False), (errno.EIO, True)])
def test_only_a_file_system_that_cannot_bring_directories_to_the_disk_is_excused(tmp_path, monkeypatch, number, raised):
    def refuse(handle):
        raise OSError(number, "refused")

    monkeypatch.setattr(atomic.os, "fsync", refuse)
    with pytest.raises(OSError, match="refused") if raised else contextlib.nullcontext():
        atomic.to_disk(tmp_path)


@pytest.fixture(params=[0o022, 0o027], ids=oct)
def umask(request):
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def test_files_are_open_to_those_whom_the_umask_lets_in(umask, tmp_path):
    with atomic_file(tmp_path / "file") as file:
        file.write("text")
    with atomic_path(tmp_path / "path") as path:
        path.touch(0o600)
    with atomic_directory(tmp_path / "directory") as folder:
        (folder / "inner").write_text("text")
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.rglob("*")}
    assert modes.pop(tmp_path / "directory") == 0o777 & ~umask
    assert len(modes) == 3 and set(modes.values()) == {0o666 & ~umask}
