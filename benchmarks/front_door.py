"""How long a person waits for help."""

import subprocess
import sys

from keras_bert_impl.commands import COMMANDS

from .row import Row, interleaved


def measure() -> list[Row]:
    def ask(*command: str) -> None:
        subprocess.run(
            [sys.executable, "-m", "keras_bert_console", *command, "--help"], check=True, capture_output=True
        )

    commands: list[list[str]] = [[], *([name] for name in COMMANDS)]
    seconds = interleaved([lambda command=command: ask(*command) for command in commands], rounds=3)
    slowest = max(range(len(commands)), key=seconds.__getitem__)
    return [
        Row("`keras-bert --help`", "s", seconds[0], bound=1.0),
        Row(f"slowest help (`{' '.join(['keras-bert', *commands[slowest]])}`)", "s", seconds[slowest], bound=1.0),
    ]
