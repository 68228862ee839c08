import dataclasses
import gzip
import io
from collections.abc import Iterator
from pathlib import Path

import pytest
from beam_runs import LOCAL, contents, documents, in_three_files, need_beam
from toy_data import toy_config

from keras_bert_impl.errors import InputError
from keras_bert_impl.training.beam_prepare import prepare_with_beam
from keras_bert_impl.training.examples import blocks
from keras_bert_impl.training.prepare import prepare

need_beam()

from apache_beam.io.filesystem import BeamIOError, FileMetadata, FileSystem

from keras_bert_impl.training.beam.files import fetched
from keras_bert_impl.training.corpus.input_files import SourceFile


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "SMALLEST", 3000)


@pytest.fixture(scope="module")
def shelves() -> Iterator[dict[str, bytes]]:
    """A file system of Beam, `shelf://…`, that is a dictionary and knows no directories, as object stores do."""
    files: dict[str, bytes] = {}

    class Written(io.BytesIO):
        path = ""

        def close(self) -> None:
            files[self.path] = self.getvalue()
            super().close()

    class Shelf(FileSystem):
        @classmethod
        def scheme(cls):
            return "shelf"

        def join(self, basepath, *paths):
            return "/".join([basepath.rstrip("/"), *paths])

        def split(self, path):
            return path.rsplit("/", 1)

        def mkdirs(self, path):
            pass

        def has_dirs(self):
            return False

        def _list(self, dir_or_prefix):
            for path, content in files.items():
                if path.startswith(dir_or_prefix):
                    yield FileMetadata(path, len(content), 0)

        def create(self, path, mime_type="", compression_type=None):
            assert compression_type == "uncompressed"
            file = Written()
            file.path = path
            return file

        def open(self, path, mime_type="", compression_type=None):
            assert compression_type == "uncompressed"
            if path not in files:
                raise BeamIOError("Not on the shelf")
            return io.BytesIO(files[path])

        def copy(self, sources, targets):
            files.update({target: files[source] for source, target in zip(sources, targets, strict=True)})

        def rename(self, sources, targets):
            files.update({target: files.pop(source) for source, target in zip(sources, targets, strict=True)})

        def exists(self, path):
            return path in files

        def size(self, path):
            return len(files[path])

        def last_updated(self, path):
            return 0

        def checksum(self, path):
            return str(len(files[path]))

        def metadata(self, path):
            return FileMetadata(path, len(files[path]), 0)

        def delete(self, paths):
            for path in paths:
                for name in [name for name in files if name.startswith(path)]:
                    del files[name]

    yield files
    assert Shelf in FileSystem.get_all_subclasses()  # Which holds it weakly.


@pytest.fixture
def shelf(shelves: dict[str, bytes]) -> dict[str, bytes]:
    shelves.clear()
    return shelves


def test_inputs_and_output_may_lie_on_file_systems_of_beam(small_blocks, shelf, tmp_path: Path):
    config = toy_config(tmp_path)
    texts = documents(config)
    inputs = in_three_files(tmp_path, texts, "parquet")
    for number, path in enumerate(inputs):
        shelf[f"shelf://in/{number}.parquet"] = Path(path).read_bytes()
    shelf["shelf://in/.hidden.txt"] = shelf["shelf://in/notes.doc"] = b"\xff"
    shelf["shelf://exclude.txt.gz"] = gzip.compress(texts[5].encode())
    config = dataclasses.replace(config, text_field="body")
    manifest = prepare(dataclasses.replace(config, inputs=inputs, exclude=(write(tmp_path / "exclude.txt", texts[5]),)))
    said: list[str] = []
    made = prepare_with_beam(
        dataclasses.replace(
            config, inputs=("shelf://in/",), exclude=("shelf://exclude.txt.gz",), output="shelf://out/data"
        ),
        LOCAL,
        said.append,
    )
    assert said[0] == "Directory 'shelf://in/': 3 files; left out 2 hidden or of other kinds."
    found = {
        path.removeprefix("shelf://out/data/"): content
        for path, content in shelf.items()
        if path.startswith("shelf://out")
    }
    local = contents(tmp_path / "data")
    assert list(found)[-1] == "manifest.json"
    assert found.keys() == local.keys()
    assert all(found[name] == local[name] for name in local if name != "manifest.json")
    assert made["documents"] == manifest["documents"] and made["documents"]["excluded"] == 1
    assert [file["path"] for file in made["files"]] == [f"shelf://in/{number}.parquet" for number in range(3)]
    assert [file["sha256"] for file in made["files"]] == [file["sha256"] for file in manifest["files"]]
    with pytest.raises(InputError, match=r"`output` must be a new or empty directory\. Received: 'shelf://out', which"):
        prepare_with_beam(dataclasses.replace(config, inputs=("shelf://in/*",), output="shelf://out"), LOCAL)


def write(path: Path, text: str) -> str:
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_a_file_that_is_gone_when_a_worker_reads_it_is_named(shelf):
    message = r"`inputs` must name files that can be read\. Received: 'shelf://gone\.txt' \(Not on the shelf"
    with pytest.raises(InputError, match=message), fetched(SourceFile("shelf://gone.txt", 1)):
        pass
    message = r"`exclude` must name files that can be read\. Received: 'nosuch://gone\.txt' \(Unable to get filesystem"
    with pytest.raises(InputError, match=message), fetched(SourceFile("nosuch://gone.txt", 1), "exclude"):
        pass


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"inputs": ("shelf://in/none*",)},
            r"`inputs` must name files that exist\. Received: 'shelf://in/none\*', which",
        ),
        ({"inputs": ("nosuch://in/a",)}, r"`inputs` must name files that can be read\. Received: 'nosuch://in/a' \("),
        ({"output": "nosuch://out"}, r"`output` must be a place that can be written\. Received: 'nosuch://out' \("),
        ({"inputs": ("shelf://in/bad.txt",)}, r"`inputs` must be UTF-8 text\. Received: 'shelf://in/bad\.txt', which"),
    ],
)
def test_mistakes_on_file_systems_of_beam_are_sentences(shelf, tmp_path: Path, changes: dict, message: str):
    shelf["shelf://in/bad.txt"] = b"\xff"
    config = dataclasses.replace(toy_config(tmp_path), **{"output": "shelf://out", **changes})
    with pytest.raises(InputError, match=message):
        prepare_with_beam(config, LOCAL)
    assert not any(path.startswith("shelf://out") for path in shelf)
