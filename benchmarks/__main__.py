"""Runs every benchmark but the longest (or those named) in a process of its own and prints one table.

python -m benchmarks [NAME ...]
"""

import dataclasses
import importlib
import json
import os
import platform
import subprocess
import sys
from pathlib import Path

from .row import Row

NAMES = (
    "front_door",
    "tokenizer",
    "prepare",
    "prepare_memory",
    "input_pipeline",
    "pretrain_step",
    "step_lengths",
    "load_checkpoint",
    "agreement",
    "served_answer",
    "serving",
    "tflite",
)
HOURS = ("finetune", "finetune_speed", "serving_load")
"""Take long, or want another installation; only when named."""
ROOT = Path(__file__).resolve().parent.parent


def main(names: list[str]) -> int:
    """Prints the table; returns 1 if a bound is missed or a benchmark fails."""
    if unknown := set(names) - {*NAMES, *HOURS}:
        print(f"Unknown benchmarks: {sorted(unknown)}. Known: {', '.join([*NAMES, *HOURS])}", file=sys.stderr)
        return 2
    rows, failed = [], []
    for name in names or NAMES:
        print(f"{name} ...", file=sys.stderr, flush=True)
        environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONWARNINGS": "ignore"}
        command = [sys.executable, "-m", "benchmarks", "--measure", name]
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            failed.append(name)
            print(done.stderr[-2000:], file=sys.stderr)
        else:
            rows += [Row(**values) for values in json.loads(done.stdout.splitlines()[-1])]
    print(f"\n{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}\n")
    print("| what | ours | peer | ratio | bound | |\n|---|---|---|---|---|---|")
    for row in rows:
        theirs = f"{row.peer}: {row.theirs:,.4g} {row.unit}" if row.theirs else "—"
        sign = "≥" if row.more_is_better else "≤"
        bound = f"{sign} {row.bound:g}" if row.bound is not None else "—"
        ratio = f"{row.ratio:.2f}" if row.theirs else "—"
        print(f"| {row.what} | {row.ours:,.4g} {row.unit} | {theirs} | {ratio} | {bound} | {row.verdict} |")
    if failed:
        print(f"\nFailed: {', '.join(failed)}")
    return 1 if failed or any(row.verdict == "MISSED" for row in rows) else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        measured = importlib.import_module(f"benchmarks.{sys.argv[2]}").measure()
        print("\n" + json.dumps([dataclasses.asdict(row) for row in measured]))
    else:
        sys.exit(main(sys.argv[1:]))
