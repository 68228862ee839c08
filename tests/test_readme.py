"""The README's tour does what it says: its commands are run, in order, in one folder."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


PLAIN_KERAS = (ROOT / "docs" / "model_directory.md").read_text(encoding="utf-8")


def blocks(language: str, text: str = README) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.M | re.S)


def commands() -> list[str]:
    """Returns the lines that a person types; a trailing backslash goes on."""
    text = "".join(blocks("console")).replace("\\\n", " ")
    return [line.removeprefix("$ ") for line in text.splitlines() if line.startswith("$ ")]


def test_the_two_commands_are_targets_of_the_makefile():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = re.findall(r"^make (\S+)", "".join(blocks("sh")), re.M)
    assert targets[:2] == ["demo", "test"]
    assert all(re.search(rf"^{target}:", makefile, re.M) for target in targets)


def test_every_file_the_readme_points_to_is_there():
    for target in re.findall(r"\]\((?!http)([^)#]+)\)", README):
        assert (ROOT / target).exists(), target


@pytest.mark.slow
def test_the_tour_runs(tmp_path):
    if not shutil.which("curl"):
        pytest.skip("the tour asks the server with curl, which is not installed")
    scripts = Path(sys.executable).parent
    script = "\n".join(["set -euo pipefail", "trap 'kill $(jobs -p) 2>/dev/null || true' EXIT", *commands()])
    for number, block in enumerate([*blocks("python"), *blocks("python", PLAIN_KERAS)]):
        (tmp_path / f"block_{number}.py").write_text(block, encoding="utf-8")
        script += f"\npython block_{number}.py"
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=tmp_path,
        env={**os.environ, "PATH": f"{scripts}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert '"predictions"' in done.stdout
