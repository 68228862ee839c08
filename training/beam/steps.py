"""The steps of the pipeline: what the local way does in one process, a file, a decision or a block at a time.

Between the steps go plain tuples, numbers and bytes; objects of ours are pickled by ourselves, so that no process
has to open them before it has opened the step.
"""

import array
import contextlib
import dataclasses
import pickle
import tempfile
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np
from apache_beam.utils.shared import Shared

from keras_bert_impl.errors import InputError

from ..configs import PrepareConfig
from ..corpus.documents import Document
from ..corpus.exclusion import Exclusion
from ..corpus.facts import Facts, facts_of_documents
from ..corpus.input_files import SourceFile
from ..corpus.readers import Reading, read_documents
from ..corpus.survey import Decision, check_unchanged
from ..corpus.temporary import temporary_room
from ..examples.assignment import assignments
from ..examples.block_worker import BlockSettings, BlockWorker
from ..examples.blocks import Block
from ..prepare import writing_output
from .files import fetched, join, write_file
from .lean import Lean

# Which mistake is told where several were met: that of the earliest stage, and there of the earliest file.
_IN_TEXT, _IN_DECISION, _IN_SECOND_READING, _IN_SHARDS = range(4)
_BATCH = 2**20
_NONE = np.zeros(1, np.int64)

# What goes from step to step, by kind.
FACTS, FILE, SURVEY, BLOCK, TOKENS, MISTAKE = "facts", "file", "survey", "block", "tokens", "mistake"
RESULTS = "results"


def _mistake(stage: int, number: int, error: InputError) -> tuple[str, Any]:
    return MISTAKE, (stage, number, str(error))


class FindFacts(Lean, beam.DoFn):
    """Reads a file: (number, pickled file) → the facts of its documents, and what is known of the file at its end.

    Args:
        reading: how it is read.
        seed: seed of the survey.
        near_duplicates: whether they will be looked for.
        excluded: the files whose text is kept out, how long a shared run of words is, and how they are read.
    """

    def __init__(
        self,
        reading: Reading,
        seed: int,
        *,
        near_duplicates: bool,
        excluded: tuple[list[SourceFile], int, Reading] | None,
    ):
        self.reading, self.seed, self.near_duplicates, self.excluded = reading, seed, near_duplicates, excluded
        self.shared = Shared()

    def process(self, element: tuple[int, bytes]) -> Iterator[tuple[str, Any]]:
        """Yields (FACTS, (file, first document, pickled facts)), then (FILE, (file, pickled file)), or a mistake."""
        number, file = element[0], pickle.loads(element[1])
        try:
            exclusion = self.shared.acquire(lambda: open_exclusion(*self.excluded)) if self.excluded else None
            first = 0
            with fetched(file):
                documents = read_documents([file], reading=self.reading)
                for facts in facts_of_documents(
                    documents, self.seed, near_duplicates=self.near_duplicates, exclusion=exclusion
                ):
                    yield FACTS, (number, first, pickle.dumps(facts))
                    first += facts.digests.size
            yield FILE, (number, pickle.dumps(file))
        except InputError as error:
            yield _mistake(_IN_TEXT, number, error)


def open_exclusion(files: Sequence[SourceFile], words: int, reading: Reading) -> Exclusion:
    """Returns what files keep out, wherever they lie."""
    with contextlib.ExitStack() as stack:
        for file in files:
            stack.enter_context(fetched(file, "exclude"))
        return Exclusion(files, words, reading)


class Decide(Lean, beam.DoFn):
    """Decides in one place what becomes of every document, from all facts in any order.

    Memory: some 130 bytes for each document at its peak (measured with four million), whether near-duplicates are
    looked for or not; for these come 32 MB, and 240 bytes for each document in a temporary file of the worker.

    Args:
        files: how many there are.
        reading: how they are read.
        decision: the further arguments of `Decision`.
    """

    def __init__(self, files: int, reading: Reading, decision: Mapping[str, Any]):
        self.files, self.reading, self.decision = files, reading, decision

    def process(self, element: tuple[int, Iterable[tuple[str, Any]]]) -> Iterator[Any]:
        """Yields (number, pickled `Assignment`) of each file; as a result the survey, or the earliest mistake."""
        files: list[Any] = [None] * self.files
        batches: list[tuple[int, int, int]] = []
        sizes = array.array("I")
        mistakes = []
        try:
            with Decision(files, **self.decision) as decision:
                for kind, content in element[1]:
                    if kind == MISTAKE:
                        mistakes.append(content)
                    elif kind == FILE:
                        files[content[0]] = pickle.loads(content[1])
                    else:
                        facts: Facts = pickle.loads(content[2])
                        batches.append((content[0], content[1], facts.digests.size))
                        sizes.frombytes(facts.sizes.tobytes())
                        decision.add(facts)
                if mistakes:
                    yield beam.pvalue.TaggedOutput(RESULTS, (MISTAKE, min(mistakes)))
                    return
                places = _places(batches)
                survey = decision.survey(self.reading, places)
        except InputError as error:
            yield beam.pvalue.TaggedOutput(RESULTS, _mistake(_IN_DECISION, 0, error))
            return
        yield beam.pvalue.TaggedOutput(RESULTS, (SURVEY, pickle.dumps(survey)))
        for number, assignment in enumerate(assignments(survey, np.frombuffer(sizes, np.uint32)[places])):
            yield number, pickle.dumps(assignment)


def _places(batches: list[tuple[int, int, int]]) -> np.ndarray:
    """Returns for each document of the corpus as the how manieth it came.

    Args:
        batches: (file, first document, documents) in the order in which they came.
    """
    came = np.array(batches, np.int64).reshape(-1, 3)
    begin = np.cumsum(came[:, 2]) - came[:, 2]
    order = np.lexsort((came[:, 1], came[:, 0]))
    counts = came[order, 2]
    within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.repeat(begin[order], counts) + within


class CutIntoBlocks(Lean, beam.DoFn):
    """Reads a file once more: (number, pickled `Assignment`) → its documents by block.

    Args:
        reading: how it is read.
    """

    def __init__(self, reading: Reading):
        self.reading = reading

    def process(self, element: tuple[int, bytes]) -> Iterator[Any]:
        """Yields ((split, block), (number of the first one, lines of documents that follow one another in it))."""
        assignment = pickle.loads(element[1])
        now = dataclasses.replace(assignment.file)
        waiting: dict[str, _Batch] = {}
        try:
            with fetched(now):
                for split, block, number, document in assignment.blocks(read_documents([now], reading=self.reading)):
                    batch = waiting.get(split)
                    if batch and (batch.block != block or batch.size > _BATCH):
                        yield (split, batch.block), (batch.first, batch.documents)
                        batch = None
                    batch = batch or _Batch(block, number)
                    batch.documents.append(document.lines)
                    batch.size += document.size
                    waiting[split] = batch
            check_unchanged(assignment.file, now)
        except InputError as error:
            yield beam.pvalue.TaggedOutput(RESULTS, _mistake(_IN_SECOND_READING, element[0], error))
            return
        for split, batch in waiting.items():
            yield (split, batch.block), (batch.first, batch.documents)


@dataclasses.dataclass
class _Batch:
    block: int
    first: int
    documents: list[tuple[str, ...]] = dataclasses.field(default_factory=list)
    size: int = 0


class MakeShards(Lean, beam.DoFn):
    """Turns a block into shards: ((split, number), batches of documents) → where they lie, and counts.

    Memory: a block. The shards are made in a temporary folder of the worker, then written to the output, each attempt
    at a block into a folder of its own, for a runner may make several.

    Args:
        config: the settings.
        tokenizer: the files of the tokenizer by their names.
        parts: the folder where the attempts go.
    """

    def __init__(self, config: PrepareConfig, tokenizer: Mapping[str, bytes], parts: str):
        self.config, self.tokenizer, self.parts = config, tokenizer, parts

    def setup(self) -> None:
        """Begins anew, on the worker."""
        self.room: tempfile.TemporaryDirectory[str] | None = None

    def teardown(self) -> None:
        """Clears the temporary folder."""
        if self.room:
            self.room.cleanup()

    def process(self, element: tuple[tuple[str, int], Iterable[tuple[int, list[tuple[str, ...]]]]]) -> Iterator[Any]:
        """Yields (BLOCK, pickled (counts, attempt, names of the files)), and apart (split, counts of the tokens)."""
        (split, number), batches = element
        documents = [Document(lines) for _, batch in sorted(batches) for lines in batch]
        attempt = uuid.uuid4().hex
        try:
            with temporary_room():
                if not self.room:
                    self._open()
                counts = self.worker(Block(split, number, tuple(documents)))
            with writing_output(self.config):
                names = list(self._write(attempt, split))
        except InputError as error:
            yield _mistake(_IN_SHARDS, number, error)
            return
        yield beam.pvalue.TaggedOutput(TOKENS, (split, counts.token_counts))
        # These are large, and are summed on the way.
        yield BLOCK, pickle.dumps((dataclasses.replace(counts, token_counts=_NONE), attempt, names))

    def _open(self) -> None:
        self.room = tempfile.TemporaryDirectory(prefix="keras-bert-")
        self.folder = Path(self.room.name)
        for name, content in self.tokenizer.items():
            (self.folder / name).write_bytes(content)
        self.worker = BlockWorker(BlockSettings.of(self.config, self.folder))

    def _write(self, attempt: str, split: str) -> Iterator[str]:
        for path in sorted((self.folder / split).rglob("*.*")):
            name = path.relative_to(self.folder).as_posix()
            write_file(join(self.parts, attempt, name), path.read_bytes())
            path.unlink()
            yield name


class Gather(Lean, beam.DoFn):
    """Writes all results into one file, for the process that started the pipeline.

    Args:
        path: the file.
    """

    def __init__(self, path: str):
        self.path = path

    def process(self, element: tuple[int, Iterable[tuple[str, Any]]]) -> None:
        """Takes (0, results)."""
        write_file(self.path, pickle.dumps(list(element[1])))
