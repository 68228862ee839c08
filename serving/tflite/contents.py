"""What lies in a TFLite file behind the graph: the vocabulary, the labels, and what an app needs to know.

It is a ZIP archive at the end of the file, uncompressed, as the associated files of TFLite's metadata are: the
interpreter passes it over, and any program that reads ZIP reads it.
"""

import dataclasses
import hashlib
import io
import json
import os
import zipfile
from pathlib import Path
from typing import IO, Any, Self

from keras_bert_impl.config import BertConfig
from keras_bert_impl.errors import InputError
from keras_bert_impl.tasks.settings import TaskSettings
from keras_bert_impl.tokenization.wordpiece import WordPieceTokenizer

FORMAT = 1
SIGNATURE_FILE, VOCABULARY_FILE, LABELS_FILE = "signature.json", "vocab.txt", "labels.txt"
KINDS = ("classification", "tagging", "question answering", "embedding", "fill-mask")

_MARK = b"TFL3"
_MARK_PLACE = 4
_LARGEST_FILE = 64 * 2**20
_MOST_FILES = 1000
_BLOCK = 1 << 20
# What zipfile lets out when an archive is not one.
_FAULTS = (zipfile.BadZipFile, zipfile.LargeZipFile, NotImplementedError, RuntimeError, ValueError, EOFError, OSError)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Contents:
    """What is known of a file beside its graph.

    Attributes:
        kind: of `KINDS`.
        tokenizer: makes pieces of texts.
        config: of the model.
        settings: how texts become rows and scores answers; None for vectors and masks.
        labels: names of the scores, in their order; empty where there are none.
        max_length: most ids that a row is made of, with `[CLS]` and `[SEP]`.
        length: columns of the inputs; None if they are free up to the model's positions.
        quantization: form of the weights, such as `"dynamic"`.
        signatures: by name `inputs` and `outputs`, each by name with `dtype`, `shape` and `meaning`.
        facts: what else is told, such as the number of parameters; plain JSON values.
    """

    kind: str
    tokenizer: WordPieceTokenizer
    config: BertConfig
    settings: TaskSettings | None
    labels: tuple[str, ...]
    max_length: int
    length: int | None
    quantization: str
    signatures: dict[str, Any]
    facts: dict[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def columns(self) -> int:
        """Most columns that the inputs may have."""
        return self.length or self.config.max_position_embeddings

    def to_dict(self) -> dict[str, Any]:
        """Returns all but the vocabulary, as plain JSON values."""
        options = {**self.tokenizer.options, "added_tokens": list(self.tokenizer.added_tokens)}
        return {
            "format": FORMAT,
            "kind": self.kind,
            "task": None if self.settings is None else dataclasses.asdict(self.settings),
            "labels": list(self.labels),
            "length": self.length,
            "max_length": self.max_length,
            "quantization": self.quantization,
            "padding": f"columns beyond the text hold id {self.tokenizer.pad_token_id}, with padding_mask 0",
            "truncation": "what does not fit into max_length ids is left out at the end; tell your users",
            "tokenizer": {"vocab_size": self.tokenizer.vocab_size, **options},
            "signatures": self.signatures,
            "config": self.config.to_dict(),
            "facts": self.facts,
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any], vocabulary: list[str]) -> Self:
        """Builds the contents again.

        Raises:
            InputError: if a value is absent or none that can be.
        """
        kind, labels, signatures, facts = (values.get(name) for name in ("kind", "labels", "signatures", "facts"))
        if values.get("format") != FORMAT or isinstance(values["format"], bool):
            raise InputError(f"`format` must be {FORMAT}. Received: format={values.get('format')!r}")
        if kind not in KINDS:
            raise InputError(f"`kind` must be one of {', '.join(KINDS)}. Received: kind={kind!r}")
        if not isinstance(labels, list) or not all(isinstance(label, str) for label in labels):
            raise InputError(f"`labels` must be a list of texts. Received: labels={labels!r:.80}")
        _check_signatures(signatures)
        for name, value in (("facts", facts), *((name, values.get(name)) for name in ("tokenizer", "config"))):
            if not isinstance(value, dict):
                raise InputError(f"`{name}` must be an object. Received: {name}={value!r:.80}")
        config = BertConfig.from_dict(values["config"])
        task = values.get("task")
        if (task is None) != (kind in ("embedding", "fill-mask")):
            raise InputError(f"`task` must be there but for vectors and masks. Received: task={task!r:.80}, {kind=}")
        length = _whole("length", values.get("length"), config.max_position_embeddings, none=True)
        max_length = _whole("max_length", values.get("max_length"), length or config.max_position_embeddings)
        assert max_length is not None
        quantization = values.get("quantization")
        if not isinstance(quantization, str):
            raise InputError(f"`quantization` must be text. Received: quantization={quantization!r:.80}")
        return cls(
            kind=str(kind),
            tokenizer=_tokenizer(values["tokenizer"], vocabulary, config),
            config=config,
            settings=None if task is None else _settings(task, str(kind)),
            labels=tuple(labels),
            max_length=max_length,
            length=length,
            quantization=quantization,
            signatures=signatures,  # type: ignore[arg-type]
            facts=facts,  # type: ignore[arg-type]
        )


def append(file: bytes, contents: Contents) -> bytes:
    """Returns a TFLite file with contents at its end; the same bytes for the same contents."""
    if not is_tflite(file[:8]):
        raise InputError("`file` must be a TFLite file. Received: bytes without its mark, TFL3")
    description = contents.to_dict() | {"graph": {"bytes": len(file), "sha256": hashlib.sha256(file).hexdigest()}}
    written = io.BytesIO(file)
    texts = {
        SIGNATURE_FILE: json.dumps(description, ensure_ascii=False, indent=2) + "\n",
        VOCABULARY_FILE: _lines(contents.tokenizer.vocabulary),
        # A line each, whatever is in a label; signature.json has them as they are.
        LABELS_FILE: _lines(" ".join(label.split()) for label in contents.labels),
    }
    with zipfile.ZipFile(written, "a", compression=zipfile.ZIP_STORED) as archive:
        for name, text in texts.items():
            archive.writestr(zipfile.ZipInfo(name), text.encode("utf-8"))
    return written.getvalue()


def read(path: str | os.PathLike[str]) -> Contents:
    """Reads what lies in a file behind the graph, and makes sure that the graph is the one it was written for.

    Nothing of the file is run, and no more of it is taken into memory than the sizes that are allowed.

    Raises:
        InputError: if the file cannot be read, is no TFLite file, has nothing behind the graph, or is damaged.
    """
    try:
        with Path(path).open("rb") as file:
            if not is_tflite(file.read(8)):
                raise _wrong("be a TFLite file", path, "its mark, TFL3, is not there")
            files = _files(file, path)
            description = _description(files[SIGNATURE_FILE], path)
            _check_graph(file, description.get("graph"), path)
    except OSError as error:
        raise _wrong("be a file that can be read", path, error.strerror or str(error)) from error
    try:
        return Contents.from_dict(description, _read_lines(files[VOCABULARY_FILE]))
    except InputError as error:
        raise _wrong(f"have a sound {SIGNATURE_FILE}", path, str(error)) from error


def is_tflite(first_bytes: bytes) -> bool:
    """Whether a file that begins so says that it is a TFLite file."""
    return first_bytes[_MARK_PLACE : _MARK_PLACE + len(_MARK)] == _MARK


def _files(file: IO[bytes], path: Any) -> dict[str, bytes]:
    """Returns the content of the files that are wanted; others, as an app's own, are left alone."""
    found: dict[str, bytes] = {}
    try:
        with zipfile.ZipFile(file) as archive:
            entries = archive.infolist()
            if len(entries) > _MOST_FILES:
                raise _damaged(path, f"{len(entries):,} files in its archive")
            for name in (SIGNATURE_FILE, VOCABULARY_FILE):
                chosen = [entry for entry in entries if entry.filename == name]
                if len(chosen) != 1:
                    raise _damaged(path, f"{len(chosen) or 'no'} {name} in its archive")
                if chosen[0].file_size > _LARGEST_FILE or chosen[0].compress_type != zipfile.ZIP_STORED:
                    raise _damaged(path, f"a {name} that is compressed or larger than {_LARGEST_FILE:,} bytes")
                found[name] = archive.read(chosen[0])
    except InputError:
        raise
    except _FAULTS as error:
        if isinstance(error, zipfile.BadZipFile) and "not a zip" in str(error).lower():
            raise _wrong(
                "have its vocabulary and notes at its end, as `keras-bert export --format tflite` writes them",
                path,
                "there is nothing behind the graph, or its end was cut off",
            ) from error
        raise _damaged(path, str(error) or type(error).__name__) from error
    except Exception as error:  # struct.error, zlib.error, and what else a hostile archive draws from the library
        raise _damaged(path, str(error) or type(error).__name__) from error
    return found


def _description(content: bytes, path: Any) -> dict[str, Any]:
    try:
        values = json.loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise _damaged(path, f"a {SIGNATURE_FILE} that is no JSON") from error
    if not isinstance(values, dict):
        raise _damaged(path, f"a {SIGNATURE_FILE} that holds no JSON object")
    return values


def _check_graph(file: IO[bytes], graph: Any, path: Any) -> None:
    """Refuses a graph that is not the one the contents were written for: the interpreter may crash on it."""
    size = graph.get("bytes") if isinstance(graph, dict) else None
    if not isinstance(size, int) or isinstance(size, bool) or not 8 <= size < file.seek(0, os.SEEK_END):
        raise _damaged(path, f"a {SIGNATURE_FILE} that does not say how long the graph is")
    digest = hashlib.sha256()
    file.seek(0)
    while size and (block := file.read(min(_BLOCK, size))):
        digest.update(block)
        size -= len(block)
    if digest.hexdigest() != graph.get("sha256"):
        raise _damaged(path, "a graph that has been changed since it was written")


def _check_signatures(signatures: Any) -> None:
    def is_side(side: Any) -> bool:
        return isinstance(side, dict) and all(isinstance(spec, dict) for spec in side.values())

    if not isinstance(signatures, dict) or not all(
        isinstance(one, dict) and is_side(one.get("inputs")) and is_side(one.get("outputs"))
        for one in signatures.values()
    ):
        raise InputError(
            f"`signatures` must give inputs and outputs of each by name. Received: signatures={signatures!r:.80}"
        )


def _settings(task: Any, kind: str) -> TaskSettings:
    known = {field.name for field in dataclasses.fields(TaskSettings)}
    if not isinstance(task, dict) or "task" not in task or not known >= task.keys():
        raise InputError(f"`task` must have keys of {', '.join(sorted(known))}. Received: task={task!r:.80}")
    settings = TaskSettings(**task)
    kinds = {"tagging": "tagging", "qa": "question answering"}
    if kinds.get(settings.task, "classification") != kind:
        raise InputError(f"`task` must be one of the kind {kind}. Received: task={settings.task!r}")
    return settings


def _tokenizer(options: dict[str, Any], vocabulary: list[str], config: BertConfig) -> WordPieceTokenizer:
    given = dict(options)
    size = given.pop("vocab_size", None)
    if size != len(vocabulary) or len(vocabulary) > config.vocab_size:
        raise InputError(
            f"`{VOCABULARY_FILE}` must have as many tokens as are told, and no more than the model has rows. "
            f"Received: {len(vocabulary)} tokens, vocab_size={size!r}, {config.vocab_size} rows"
        )
    added = given.get("added_tokens", [])
    if not isinstance(added, list) or not all(isinstance(token, str) for token in added):
        raise InputError(f"`added_tokens` must be a list of tokens. Received: added_tokens={added!r:.80}")
    for name in ("unk_token", "cls_token", "sep_token", "pad_token", "mask_token"):
        if not isinstance(given.get(name, ""), str):
            raise InputError(f"`{name}` must be text. Received: {name}={given[name]!r:.80}")
    try:
        return WordPieceTokenizer(vocabulary, **given)
    except TypeError as error:
        raise InputError(f"`tokenizer` must have options that are known. Received: {sorted(given)}") from error


def _whole(name: str, value: Any, most: int, *, none: bool = False) -> int | None:
    if value is None and none:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not 3 <= value <= most:
        raise InputError(f"`{name}` must be a whole number from 3 to {most}. Received: {name}={value!r:.80}")
    return value


def _lines(texts: Any) -> str:
    return "".join(f"{text}\n" for text in texts)


def _read_lines(content: bytes) -> list[str]:
    try:
        return content.decode("utf-8").removesuffix("\n").split("\n")
    except UnicodeDecodeError as error:
        raise InputError(f"`{VOCABULARY_FILE}` must be UTF-8. Received: byte {error.start} cannot be read") from error


def _damaged(path: Any, what: str) -> InputError:
    return _wrong("be whole", path, f"damaged: {what}")


def _wrong(rule: str, path: Any, what: str) -> InputError:
    return InputError(f"`model` must {rule}. Received: {os.fspath(path)!r}: {what}")
