"""A browser to look at pages with, where there is one: `$KERAS_BERT_BROWSER`, or Chromium on the path."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
# No sandbox, since tests are often run as root; nothing is asked of the network but the page.
_OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def browser() -> str | None:
    """Returns the program, or None."""
    named = os.environ.get("KERAS_BERT_BROWSER")
    return named or next(filter(None, map(shutil.which, _NAMES)), None)


def document_of(url: str, program: str, *options: str, seconds: int = 10) -> str:
    """Opens a page, lets so many seconds of its own time pass, and returns the document as it then is."""
    with tempfile.TemporaryDirectory() as profile:
        command = [program, *_OPTIONS, f"--user-data-dir={profile}", f"--virtual-time-budget={1000 * seconds}"]
        # The browser's helpers may still write there while the folder is removed.
        done = subprocess.run(
            [*command, *options, "--dump-dom", url], capture_output=True, check=True, timeout=120, cwd=Path(profile)
        )
        shutil.rmtree(profile, ignore_errors=True)
        Path(profile).mkdir(exist_ok=True)
    return done.stdout.decode("utf-8")
