"""Worker processes that turn blocks into shards.

Each is a fresh Python that opens neither TensorFlow nor the caller's main module, and is spoken to over its
standard input and output. It ends when its input does, so it cannot outlive a parent that was killed.
"""

import contextlib
import ctypes
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Generator, Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from keras_bert_impl.errors import InputError

from ..output_errors import OutputError, writing
from .block_worker import BlockCounts, BlockSettings, BlockWorker
from .blocks import Block

# While `keras_bert_console` is loaded, `import keras_bert_impl` does not open TensorFlow.
_START = "import keras_bert_console, keras_bert_impl.training.examples.worker_pool as pool; pool.serve()"
_END = object()
_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG of Linux' prctl


class StoppedError(InputError):
    """The work ended in the middle for a reason outside it; the same command may go on from there."""


def work_through(
    settings: BlockSettings, blocks: Iterable[Block], workers: int, *, hold: Sequence[int] = ()
) -> Generator[BlockCounts, None, None]:
    """Yields the counts of all blocks, in no certain order; with one worker no process is started.

    At most one block per worker is in memory, besides those the iterable holds.

    Args:
        settings: what is the same for every block.
        blocks: the blocks; read from several threads, one at a time.
        workers: number of processes.
        hold: descriptors, such as of a lock, that the processes keep open as long as they live.

    Raises:
        StoppedError: if a worker process was ended from outside.
        OutputError: what a worker met while writing.
    """
    if workers == 1:
        with writing():
            worker = BlockWorker(settings)
        for block in blocks:
            with writing():
                counts = worker(block)
            yield counts
        return
    processes = [_start(hold) for _ in range(workers)]
    results: queue.Queue[Any] = queue.Queue()
    source, lock = iter(blocks), threading.Lock()
    threads = [
        threading.Thread(target=_feed, args=(process, settings, source, lock, results), daemon=True)
        for process in processes
    ]
    try:
        for thread in threads:
            thread.start()
        working = workers
        while working:
            result = results.get()
            if result is _END:
                working -= 1
            elif isinstance(result, BaseException):
                raise result
            else:
                yield result
    finally:
        for process in processes:
            process.kill()
            process.wait()
        for thread in threads:
            thread.join()
        for process in processes:
            for stream in (process.stdin, process.stdout):
                with contextlib.suppress(OSError):  # What was not sent any more cannot be flushed.
                    stream.close()  # type: ignore[union-attr]


def serve() -> None:
    """Works through the blocks that come on standard input; runs in a worker process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # The parent ends its workers itself.
    with contextlib.suppress(AttributeError, OSError, TypeError):  # Elsewhere a worker ends after its block.
        ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
    requests, replies = sys.stdin.buffer, os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # Nothing that is printed may come between the replies.
    try:
        worker = BlockWorker(pickle.load(requests))
        while True:
            try:
                block = pickle.load(requests)
            except EOFError:
                return
            _send(replies, worker(block))
    except InputError as error:
        _send(replies, error)
    except OSError as error:
        _send(replies, OutputError(error.errno, error.strerror or str(error)))
    except Exception:
        _send(replies, RuntimeError(f"A worker process failed:\n{traceback.format_exc()}"))


def _start(hold: Sequence[int]) -> subprocess.Popen[bytes]:
    path = os.pathsep.join(place or str(Path.cwd()) for place in sys.path)
    return subprocess.Popen(
        [sys.executable, "-P", "-c", _START],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": path},
        pass_fds=hold,
    )


def _send(stream: IO[bytes], value: Any) -> None:
    pickle.dump(value, stream, protocol=pickle.HIGHEST_PROTOCOL)
    stream.flush()


def _feed(
    process: subprocess.Popen[bytes],
    settings: BlockSettings,
    source: Iterator[Block],
    lock: threading.Lock,
    results: queue.Queue[Any],
) -> None:
    """Gives one process block after block; runs in a thread of the parent."""
    assert process.stdin and process.stdout
    try:
        _send(process.stdin, settings)
        while True:
            with lock:
                block = next(source, _END)
            if block is _END:
                break
            _send(process.stdin, block)
            results.put(pickle.load(process.stdout))
    except (EOFError, BrokenPipeError, pickle.UnpicklingError):
        results.put(_cause_of_death(process))
    except BaseException as error:
        results.put(error)
    results.put(_END)


def _cause_of_death(process: subprocess.Popen[bytes]) -> StoppedError:
    code = process.wait()
    how = f"by {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
    return StoppedError(
        "`workers` must be few enough for the memory, and none may be ended from outside. "
        f"Received: a worker process that ended {how} in the middle of its work"
    )
