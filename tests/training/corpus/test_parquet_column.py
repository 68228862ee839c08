import sys
from pathlib import Path

import pytest

from keras_bert_impl.errors import InputError
from keras_bert_impl.training.corpus.parquet_column import parquet_texts

arrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")
TEXTS = [f"text {number}\nwith 好" for number in range(300)]


def written(path: Path, column, **options) -> Path:
    parquet.write_table(arrow.table({"id": list(range(len(column))), "text": column}), path, **options)
    return path


def texts(path: Path, field: str = "text", advance=lambda share: None) -> list[tuple[int, str]]:
    return list(parquet_texts(str(path), path.name, field, advance))


@pytest.mark.parametrize("kind", ["string", "large_string", "string_view", "dictionary"])
def test_every_kind_of_text_column_is_read(tmp_path: Path, kind: str):
    types = {"dictionary": arrow.dictionary(arrow.int32(), arrow.string())}
    column = arrow.array(TEXTS, types.get(kind) or getattr(arrow, kind)())
    path = written(tmp_path / "a.parquet", column, row_group_size=70, compression="zstd")
    shares: list[float] = []
    assert texts(path, advance=shares.append) == list(enumerate(TEXTS, start=1))
    assert sum(shares) == pytest.approx(1)


@pytest.mark.parametrize(
    ("column", "field", "message"),
    [
        (["a"], "body", r"`text_field` must name a column\. Received: 'body'; 'a\.parquet' has \['id', 'text'\]"),
        (["a"], "id", r"`text_field` must name a column of text\. Received: 'id'; in 'a\.parquet' it is int64"),
        (
            ["a", None],
            "text",
            r"`text_field` must name a column with text in every row\. .*row 2 of .* has none",
        ),
    ],
)
def test_a_column_that_gives_no_text_is_named(tmp_path: Path, column: list, field: str, message: str):
    with pytest.raises(InputError, match=message):
        texts(written(tmp_path / "a.parquet", column), field)


@pytest.mark.parametrize("left", [0, 0.5, 0.9])
def test_a_file_that_is_no_parquet_is_said_to_be(tmp_path: Path, left: float):
    path = written(tmp_path / "a.parquet", TEXTS)
    content = path.read_bytes()
    path.write_bytes(content[: int(left * len(content))])
    message = r"`inputs` must be whole files\. Received: 'a\.parquet', no Parquet file \(.+\)"
    with pytest.raises(InputError, match=message):
        texts(path)


def test_a_column_that_is_not_utf8_is_refused(tmp_path: Path):
    bad = arrow.array([b"good", b"b\xffad"], arrow.binary()).view(arrow.string())
    message = r"`inputs` must be UTF-8 text\. Received: 'a\.parquet', which is not near row 1"
    with pytest.raises(InputError, match=message):
        texts(written(tmp_path / "a.parquet", bad))


def test_without_pyarrow_it_is_said_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = written(tmp_path / "a.parquet", TEXTS)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(
        InputError, match=r"need pyarrow: pip install 'keras-bert-impl\[data\]'\. Received: 'a\.parquet'"
    ):
        texts(path)
