"""The highest version that can be loaded is served, and no request notices how it came there."""

import contextlib
import random
import shutil
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest
from fake_servables import FakeVersions, texts, wait_until

from keras_bert_impl.errors import InputError
from keras_bert_impl.serving.server.batching import Batching
from keras_bert_impl.serving.server.models import freed_memory
from keras_bert_impl.serving.server.models.load_error import LoadError
from keras_bert_impl.serving.server.models.store import ModelStore
from keras_bert_impl.serving.server.request_error import RequestError
from keras_bert_impl.serving.version_status import VersionStatus

LOOK = 0.005
"""Seconds between two looks."""


@pytest.fixture
def versions(tmp_path):
    return FakeVersions(tmp_path / "model")


@pytest.fixture
def lines():
    return []


@contextlib.contextmanager
def started(versions, lines=None, poll_seconds=LOOK):
    say = (lambda line: None) if lines is None else lines.append
    store = ModelStore({"m": versions.directory}, load=versions.load, poll_seconds=poll_seconds, say=say)
    try:
        store.start()
        yield store
    finally:
        store.close()


def served(store):
    """Returns the number of the version that is served; None if none is."""
    try:
        with store.lease("m") as servable:
            return servable.version
    except RequestError:
        return None


def states(store):
    return {known.version: known.state for known in store.known("m")}


def test_the_highest_version_that_can_be_loaded_is_served(versions, lines):
    for number, content in (
        (1, "whole"),
        (2, "whole"),
        (10, "torn"),
        ("007x", "whole"),
        ("٣", "whole"),
        ("-5", "whole"),
    ):
        versions.add(number, content)
    (versions.directory / "99").mkdir()
    versions.add("9" * 200)
    with started(versions, lines) as store:
        assert served(store) == 2
        assert store.status("m") == [
            VersionStatus(10, "END", "DATA_LOSS", "It is torn"),
            VersionStatus(2, "AVAILABLE"),
        ]
        assert store.status("m", 2) == [VersionStatus(2, "AVAILABLE")]
    assert versions.tried == [10, 2]
    assert lines == [f"Version 10 of m is not served. {versions.directory / '10'} cannot be loaded: torn"]


@pytest.mark.parametrize(
    ("name", "version", "message"), [("zz", None, "any versions of model zz"), ("m", 7, "version 7 of model m")]
)
def test_the_status_of_what_is_not_there_is_refused(versions, name, version, message):
    versions.add(1)
    with started(versions) as store, pytest.raises(RequestError, match=f"Could not find {message}") as error:
        store.status(name, version)
    assert error.value.code == "NOT_FOUND"


@pytest.mark.parametrize(
    ("name", "version", "wanted"),
    [("zz", None, r"Latest\(zz\)"), ("m", 7, r"Specific\(m, 7\)"), ("zz", 1, r"Specific\(zz, 1\)")],
)
def test_what_is_not_there_cannot_be_leased(versions, name, version, wanted):
    versions.add(1)
    message = f"^Servable not found for request: {wanted}$"
    with started(versions) as store, pytest.raises(RequestError, match=message) as error, store.lease(name, version):
        pass
    assert error.value.code == "NOT_FOUND"


def test_without_a_version_that_can_be_loaded_nothing_starts(versions):
    with pytest.raises(InputError, match="must hold numbered version directories"), started(versions):
        pass
    versions.add(1, "torn")
    versions.add(2, "worn")
    with pytest.raises(InputError, match="2 cannot be loaded: worn"), started(versions):
        pass
    versions.add(3, "fails oddly")
    with pytest.raises(InputError, match="3' cannot be loaded: loading failed with IndexError"), started(versions):
        pass


def test_a_model_whose_directory_cannot_be_read_does_not_start(versions):
    versions.directory.rmdir()
    with pytest.raises(InputError, match="model' cannot be read: No such file or directory"), started(versions):
        pass


def test_a_new_version_takes_over_and_the_old_one_goes(versions, lines):
    versions.add(1)
    with started(versions, lines) as store:
        versions.add(2)
        wait_until(lambda: served(store) == 2)
        wait_until(lambda: states(store) == {2: "AVAILABLE", 1: "END"})
        assert [servable.closed for servable in versions.loaded] == [1, 0]
        assert lines == ["Version 2 of m is served in place of version 1."]
        with pytest.raises(RequestError, match=r"Specific\(m, 1\)"), store.lease("m", 1):
            pass
    assert [servable.closed for servable in versions.loaded] == [1, 1]


@pytest.mark.parametrize(
    ("content", "state"), [("whole", {2: "AVAILABLE", 1: "END"}), ("torn", {2: "END", 1: "AVAILABLE"})]
)
def test_the_memory_of_a_version_that_went_is_given_back(versions, monkeypatch, content, state):
    given_back = []
    trim = freed_memory.give_back
    monkeypatch.setattr(freed_memory, "give_back", lambda: given_back.append(trim()))
    versions.add(1)
    with started(versions) as store:
        versions.add(2, content)
        wait_until(lambda: states(store) == state)
        wait_until(lambda: given_back)
        looks_go_by()
        assert len(given_back) == 1


def test_a_version_is_kept_until_its_last_request_is_answered(versions):
    versions.add(1)
    with started(versions) as store:
        with store.lease("m") as one:
            with store.lease("m", 1) as again:
                versions.add(2)
                wait_until(lambda: served(store) == 2)
                assert (one.version, again.version, states(store)[1]) == (1, 1, "UNLOADING")
            assert one.closed == 0
            assert one.run("serving_default", texts("a"))["version"].tolist() == [1]
        assert one.closed == 1
        assert states(store)[1] == "END"


def test_the_old_version_answers_while_the_new_one_is_loaded(versions):
    loading, go_on = threading.Event(), threading.Event()

    def while_loading(directory):
        if directory.name == "2":
            loading.set()
            assert go_on.wait(20)

    versions.while_loading = while_loading
    versions.add(1)
    with started(versions) as store:
        versions.add(2)
        assert loading.wait(20)
        assert (served(store), states(store)) == (1, {2: "LOADING", 1: "AVAILABLE"})
        go_on.set()
        wait_until(lambda: served(store) == 2)


def test_a_broken_version_is_reported_and_the_old_one_stays(versions, lines):
    versions.add(1)
    with started(versions, lines) as store:
        versions.add(2, "torn")
        wait_until(lambda: lines)
        assert served(store) == 1
        assert store.status("m", 2) == [VersionStatus(2, "END", "DATA_LOSS", "It is torn")]
        assert store.ready
        looks_go_by()
        assert (versions.tried, len(lines)) == ([1, 2], 1)  # not tried again and again
        versions.add(2, "whole")
        wait_until(lambda: served(store) == 2)


def test_what_was_loaded_of_a_broken_version_is_let_go(versions, lines):
    class Part:
        pass

    parts = []

    def while_loading(directory):
        if directory.name == "2":
            part = Part()
            parts.append(weakref.ref(part))
            raise LoadError("It is torn", "It is torn", "DATA_LOSS")

    versions.while_loading = while_loading
    versions.add(1)
    with started(versions, lines) as store:
        versions.add(2)
        wait_until(lambda: lines)
        wait_until(lambda: parts[0]() is None, seconds=2)
        assert store.status("m", 2) == [VersionStatus(2, "END", "DATA_LOSS", "It is torn")]


def looks_go_by():
    threading.Event().wait(LOOK * 10)


def test_an_unexpected_error_names_no_path_to_clients(versions, lines):
    versions.add(1)
    with started(versions, lines) as store:
        versions.add(2, "fails oddly")
        wait_until(lambda: lines)
        message = "The SavedModel cannot be loaded: loading failed with IndexError"
        assert store.status("m", 2) == [VersionStatus(2, "END", "INTERNAL", message)]
        assert served(store) == 1


def test_a_version_that_is_being_copied_is_left_until_it_holds_still(versions):
    versions.add(1)
    with started(versions) as store:
        directory = versions.directory / "2"
        directory.mkdir()
        (directory / "variables").mkdir()
        for size in range(30):
            (directory / "variables" / "data").write_text("x" * size)
            if size == 10:
                (directory / "saved_model.pb").write_text("torn")
            if size > 10:
                (directory / "saved_model.pb").write_text("torn" + "x" * size)
            threading.Event().wait(LOOK / 5)
        (directory / "saved_model.pb").write_text("whole")
        wait_until(lambda: served(store) == 2)


def test_a_version_whose_files_change_while_it_is_loaded_is_loaded_anew(versions, lines):
    def while_loading(directory):
        if directory.name == "2" and versions.tried.count(2) == 1:
            (directory / "variables").write_text("more")

    versions.while_loading = while_loading
    versions.add(1)
    with started(versions, lines) as store:
        versions.add(2)
        wait_until(lambda: served(store) == 2)
        half, whole = versions.loaded[1:]
        assert (half.closed, whole.closed) == (1, 0)
        assert lines[0].endswith("cannot be loaded: its files changed while they were read")


def test_when_its_directory_is_removed_the_next_version_takes_over(versions, lines):
    versions.add(1)
    versions.add(2)
    with started(versions, lines) as store:
        assert served(store) == 2
        shutil.rmtree(versions.directory / "2")
        wait_until(lambda: served(store) == 1)
        wait_until(lambda: states(store) == {1: "AVAILABLE"})
        assert lines == ["Version 1 of m is served in place of version 2."]
        shutil.rmtree(versions.directory / "1")
        wait_until(lambda: not store.ready)
        assert served(store) is None
        assert lines[1] == "Version 1 of m is no longer served: its directory is gone."
        versions.add(1)
        wait_until(lambda: served(store) == 1)
        assert store.ready


def test_a_version_stays_if_only_broken_ones_are_left(versions, lines):
    versions.add(1, "torn")
    versions.add(2)
    with started(versions, lines) as store:
        shutil.rmtree(versions.directory / "2")
        wait_until(lambda: lines)
        assert lines[0].startswith("Version 1 of m is not served.")
        assert served(store) == 2


def test_a_directory_that_cannot_be_read_for_a_moment_changes_nothing(versions):
    versions.add(1)
    with started(versions) as store:
        away = versions.directory.rename(versions.directory.with_name("away"))
        looks_go_by()
        assert served(store) == 1
        away.rename(versions.directory)
        versions.add(2)
        wait_until(lambda: served(store) == 2)


def test_a_listener_that_fails_does_not_end_the_looking(versions):
    def say(line):
        raise BrokenPipeError

    versions.add(1)
    store = ModelStore({"m": versions.directory}, load=versions.load, poll_seconds=LOOK, say=say)
    store.start()
    try:
        for number in (2, 3):
            versions.add(number)
            wait_until(lambda number=number: served(store) == number)
        wait_until(lambda: [servable.closed for servable in versions.loaded] == [1, 1, 0])
    finally:
        store.close()


def test_loading_can_be_interrupted(versions):
    for number in (1, 2):
        versions.add(number, "torn")
    store = ModelStore({"m": versions.directory, "n": versions.directory}, load=versions.load)
    versions.while_loading = lambda directory: store.interrupt()
    store.start()
    store.close()
    assert versions.tried == [2]


def test_several_models_have_their_own_versions(tmp_path):
    one, two = FakeVersions(tmp_path / "one"), FakeVersions(tmp_path / "two")
    one.add(1)
    two.add(5)
    store = ModelStore({"a": one.directory, "b": two.directory}, load=one.load, poll_seconds=LOOK)
    store.start()
    try:
        two.add(6)
        with store.lease("a") as servable:
            assert (servable.name, servable.version) == ("a", 1)
        wait_until(lambda: store.status("b")[0] == VersionStatus(6, "AVAILABLE"))
        assert store.names == ["a", "b"]
    finally:
        store.close()
    assert all(servable.closed == 1 for servable in one.loaded)


@pytest.mark.parametrize("batched", [False, True])
def test_no_request_fails_or_meets_a_closed_version_while_versions_come_and_go(versions, batched):
    versions.add(1)
    done = threading.Event()
    batching = Batching(threads=2, wait_seconds=0.0005)

    def ask(seed):
        rng, seen = random.Random(seed), []
        while not done.wait(0.0005):
            text = "x" * rng.randrange(20)
            with store.lease("m") as servable:
                run = (lambda *request: batching.run(servable, *request)) if batched else servable.run
                answer = run("serving_default", texts(text))
                assert servable.closed == 0
            assert answer["length"].tolist() == [len(text)]
            assert answer["version"].tolist() == [servable.version]
            seen.append(servable.version)
        return seen

    with started(versions, poll_seconds=0.001) as store, ThreadPoolExecutor(8) as pool:
        futures = [pool.submit(ask, seed) for seed in range(8)]
        try:
            for number in range(2, 16):
                versions.add(number, "whole" if number % 4 else "torn")
                if number % 4:
                    wait_until(lambda number=number: served(store) == number)
                if number % 5 == 0:
                    shutil.rmtree(versions.directory / str(number))
                    wait_until(lambda number=number: served(store) != number)
        finally:
            done.set()
        seen = [future.result() for future in futures]
    batching.close()
    assert all(number % 4 for numbers in seen for number in numbers)
    assert len(set().union(*seen)) > 5
    assert all(servable.closed == 1 for servable in versions.loaded)
