"""The memory of `prepare`, all processes together, on 96 MB of text and on six times as much."""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from .novels import VOCABULARY, novels, write_altered_copies
from .row import Row

_SECONDS_BETWEEN_LOOKS = 0.05


def measure() -> list[Row]:
    text = novels()
    if text is None:
        return []
    with tempfile.TemporaryDirectory(prefix="keras-bert-benchmark-") as name:
        folder = Path(name)
        once, rate = _peak_megabytes(text, folder / "once")
        write_altered_copies(text, folder / "six.txt", 6)
        six_times, rate_of_six = _peak_megabytes(folder / "six.txt", folder / "six")
    what = "prepare, lengths 128 and 512, two workers"
    size = text.stat().st_size / 1e6
    return [
        Row(f"{what}: peak memory, {6 * size:.0f} MB of text", "MB", six_times, bound=1500),
        Row(f"{what}: peak memory, six times the text", "MB", six_times, f"{size:.0f} MB of text", once, 1.15),
        Row(f"{what}: rate on {6 * size:.0f} MB", "MB/s", rate_of_six, f"{size:.0f} MB", rate, more_is_better=True),
    ]


def _peak_megabytes(text: Path, output: Path) -> tuple[float, float]:
    """Returns the largest sum of the resident memory of all processes, and the rate in MB/s."""
    arguments = ["prepare", text, "--vocab", VOCABULARY, "--output", output, "--lengths", 128, 512, "--workers", 2]
    started = time.perf_counter()
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "keras_bert_console", *map(str, arguments)], stdout=errors, stderr=errors
        )
        peak = 0
        while process.poll() is None:
            peak = max(peak, sum(map(_resident_bytes, [process.pid, *_children(process.pid)])))
            time.sleep(_SECONDS_BETWEEN_LOOKS)
        errors.seek(0)
        if process.returncode:
            raise RuntimeError(f"prepare ended with {process.returncode}: {errors.read().decode()}")
    return peak / 1e6, text.stat().st_size / 1e6 / (time.perf_counter() - started)


def _children(process: int) -> list[int]:
    try:
        return [
            int(word) for path in Path(f"/proc/{process}/task").glob("*/children") for word in path.read_text().split()
        ]
    except OSError:
        return []


def _resident_bytes(process: int) -> int:
    """Returns the resident memory of a process that may just have ended; pages that two share are counted twice."""
    try:
        lines = Path(f"/proc/{process}/status").read_text(encoding="utf-8").splitlines()
    except OSError:
        return 0
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith("VmRSS:")), 0)
