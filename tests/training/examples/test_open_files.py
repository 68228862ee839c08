import os
import resource
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from toy_data import toy_config

from keras_bert_impl.errors import InputError
from keras_bert_impl.training.examples.open_files import make_room_for_files
from keras_bert_impl.training.examples.prepared_data import PreparedData
from keras_bert_impl.training.prepare import prepare


@pytest.fixture
def narrow_limit() -> Iterator[int]:
    """Lets this process open thirty more files and no more, unless it asks for it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    narrow = len(os.listdir("/dev/fd")) + 30  # noqa: PTH208
    resource.setrlimit(resource.RLIMIT_NOFILE, (narrow, hard))
    yield narrow
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_more_shards_than_files_may_be_open_are_read_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, narrow_limit: int
) -> None:
    monkeypatch.setattr("keras_bert_impl.training.prepare.block_size", lambda size: 1000)
    manifest = prepare(toy_config(tmp_path, count=60, lengths=(16,)))
    assert len(manifest["examples"]["train"]["16"]["shards"]) > 10
    examples = PreparedData(tmp_path / "data").examples("train", 16)
    assert len(examples.rows(np.arange(len(examples)))["token_ids"]) == manifest["examples"]["train"]["16"]["examples"]
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] > narrow_limit


def test_a_limit_that_cannot_be_raised_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (64, 128))
    message = r"`data` needs 5,000 files open at once; allow the process more of them \(ulimit -n\)\. .* of 128 files"
    with pytest.raises(InputError, match=message):
        make_room_for_files(5000)
