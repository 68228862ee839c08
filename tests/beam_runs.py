"""Corpora in several files and how a mistake comes out, for the tests of the pipelines of Apache Beam."""

import gzip
import json
import lzma
from pathlib import Path

import pytest

from keras_bert_impl.errors import InputError
from keras_bert_impl.training.beam_prepare import prepare_with_beam
from keras_bert_impl.training.configs import PrepareConfig

# Beam's local runner itself; `DirectRunner` is the same where it may not download another one.
LOCAL = "--runner=FnApiRunner"


def need_beam() -> None:
    """Skips the module that calls it where Beam is not installed."""
    pytest.importorskip("apache_beam", reason="needs Apache Beam (extra `beam`)")


def contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def documents(config: PrepareConfig) -> list[str]:
    return Path(config.inputs[0]).read_text(encoding="utf-8").strip().split("\n\n")


def in_three_files(folder: Path, texts: list[str], form: str) -> tuple[str, ...]:
    """Writes the texts into three files, the second one empty but for parquet."""
    third = len(texts) // 3
    paths = []
    for number, part in enumerate((texts[:third], [], texts[third:])):
        path = folder / f"{number}.{form}"
        plain = "\n\n".join(part).encode()
        lines = "".join(json.dumps({"body": text}) + "\n" for text in part).encode()
        if form == "parquet":
            arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
            parquet.write_table(arrow.table({"body": arrow.array(part, arrow.string())}), path)
        else:
            path.write_bytes({"txt": plain, "txt.xz": lzma.compress(plain), "jsonl.gz": gzip.compress(lines)}[form])
        paths.append(str(path))
    return tuple(paths)


def refused(config: PrepareConfig, options: str = LOCAL) -> str:
    before = sorted(Path(config.output).parent.iterdir())
    with pytest.raises(InputError) as error:
        prepare_with_beam(config, options)
    assert sorted(Path(config.output).parent.iterdir()) == before
    return str(error.value)
