"""The whole way once: each step is the command a person would type, shown before it runs."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from keras_bert_impl.errors import InputError

MARKER = "made-by-keras-bert-demo"
QUESTIONS = (
    "open the file, read the file and close the [MASK].",
    "the input tensor, an output tensor, and a [MASK] of the same shape.",
    "each axis of the array, and the [MASK] of the first axis.",
)
LENGTHS = (128, 512)
STEPS = 3000


def run_demo(
    output: str | os.PathLike[str],
    *,
    inputs: Sequence[str] = (),
    seed: int = 1,
    steps: int | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> dict[str, Any]:
    """Learns a vocabulary, prepares, pretrains, evaluates, exports, serves and asks, narrating each command.

    Args:
        output: directory for all that is made; a former demo's is replaced, any other content refused.
        inputs: text files to learn from; the documentation of the installed Python packages if none.
        seed: seed of every step.
        steps: training steps.
        say: takes each line of the narration.

    Returns:
        What `keras-bert evaluate` measured (`"evaluation"`, None without held-out documents) and the
        served answers (`"answers"`).

    Raises:
        InputError: if `output` holds something else, or a step fails.
    """
    started = time.monotonic()
    folder = _fresh_folder(Path(output), inputs)
    steps = STEPS if steps is None else steps
    vocab, data, run, export, metrics = (
        str(folder / name) for name in ("vocab.txt", "data", "run", "export", "evaluation.json")
    )

    say(f"From raw text to an answering model. All that is made lies in {folder}.")
    texts = [str(path) for path in inputs]
    if not texts:
        texts = [str(folder / "docs.txt")]
        say("\n[1/7] Text: the documentation that the installed Python packages carry.")
        _run(["demo", "--text", *texts], say)
    say("\n[2/7] A vocabulary of word pieces, learnt from the text.")
    _run(["vocab", *texts, "--output", vocab, "--size", "8000"], say)
    say("\n[3/7] Pretraining examples: sentence pairs at two lengths, a share of the documents held out.")
    lengths = ["--lengths", *map(str, LENGTHS)]
    _run(["prepare", *texts, "--vocab", vocab, "--output", data, *lengths, "--seed", str(seed), "--workers", "2"], say)
    say(f"\n[4/7] A tiny BERT learns on two replicas: 90 % of the steps at length {LENGTHS[0]}, 10 % at {LENGTHS[1]}.")
    _run(["pretrain", "--data", data, "--run", run, *_pretrain_options(steps, seed)], say)
    say("\n[5/7] How well does it predict masked words of documents it has never seen?")
    evaluation = None
    if json.loads((folder / "data" / "manifest.json").read_text(encoding="utf-8"))["documents"]["held_out"]:
        _run(["evaluate", run, "--data", data, "--output", metrics], say)
        evaluation = json.loads(Path(metrics).read_text(encoding="utf-8"))
    else:
        say("No document was held out of so small a text, so there is nothing to measure on.")
    say("\n[6/7] Export: a SavedModel that takes raw text, checked in a process of its own.")
    _run(["export", run, export], say)
    say("\n[7/7] Serving it on this machine, and asking over HTTP.")
    questions = _questions_from(texts) if inputs else QUESTIONS
    answers = _ask(export, questions, say)

    say(f"\nDone in {(time.monotonic() - started) / 60:.1f} minutes.")
    for place, what in (
        ("run/report.html", "the curves of the training"),
        ("run/model", "the model, as a directory that other tools open too"),
        ("export", "the SavedModel for TensorFlow Serving"),
        ("data/manifest.json", "what the examples were made of"),
    ):
        if (folder / place).exists():
            say(f"  {folder / place}: {what}")
    say(f"  again by hand: {_shown(['fill-mask', run, questions[0]])}")
    return {"evaluation": evaluation, "answers": answers}


def _pretrain_options(steps: int, seed: int) -> list[str]:
    """Settings for a small model in a short run.

    Few tokens call for many small batches, no dropout, and running means that keep up (`beta_2`, bias
    correction). The initial values are wider as the vectors are shorter: 0.02 is made for 768.
    """
    phases = [
        {"length": LENGTHS[0], "share": 0.9, "batch_size": 16},
        {"length": LENGTHS[1], "share": 0.1, "batch_size": 4},
    ]
    model = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, "initializer_range": 0.05}
    return [
        *("--preset", "tiny", "--model", json.dumps(model), "--steps", str(steps), "--phases", json.dumps(phases)),
        *("--learning-rate", "2e-3", "--warmup-steps", str(steps // 10), "--beta-2", "0.98", "--bias-correction"),
        *("--evaluate-every", str(max(1, steps // 5)), "--evaluation-examples", "500"),
        *("--checkpoint-every", str(max(1, steps // 20)), "--replicas", "2", "--seed", str(seed)),
    ]


def _fresh_folder(folder: Path, inputs: Sequence[str]) -> Path:
    for path in inputs:
        if not Path(path).is_file():
            raise InputError(f"`input` must be a file. Received: {path!r}, which is not there or not one")
        if folder.resolve() in Path(path).resolve().parents:
            raise InputError(f"`input` must lie outside `output`. Received: input={path!r}, output={str(folder)!r}")
    if (folder / MARKER).is_file():
        shutil.rmtree(folder)
    elif folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(
            f"`output` must be new, empty or a former demo's. Received: {str(folder)!r}, which has content"
        )
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MARKER).touch()
    return folder


def _shown(arguments: Sequence[str]) -> str:
    """The command as a person types it."""
    return shlex.join(["keras-bert", *arguments])


def _started(arguments: Sequence[str]) -> list[str]:
    """The same command, run by this very Python."""
    return [sys.executable, "-m", "keras_bert_console", *arguments]


def _run(arguments: Sequence[str], say: Callable[[str], None]) -> None:
    say(f"$ {_shown(arguments)}")
    code = subprocess.run(_started(arguments), check=False).returncode
    if code:
        raise InputError(f"the step `keras-bert {arguments[0]}` ended with code {code}, and the demo with it")


def _ask(export: str, questions: Sequence[str], say: Callable[[str], None]) -> list[Any]:
    """Starts the server, asks each question over HTTP, prints the answers and stops the server."""
    command = ["serve", export, "--rest-port", "0", "--no-grpc"]
    say(f"$ {_shown(command)}")
    answers = []
    with subprocess.Popen(_started(command), stdout=subprocess.PIPE, text=True, encoding="utf-8") as server:
        try:
            url = _served_url(server, say)
            for question in questions:
                body = json.dumps({"instances": [{"text": question}]})
                say(f"$ curl -d {shlex.quote(body)} {url}:predict")
                request = urllib.request.Request(f"{url}:predict", body.encode(), {"Content-Type": "application/json"})
                with urllib.request.urlopen(request, timeout=60) as reply:
                    answer = json.load(reply)["predictions"][0]
                answers.append(answer)
                say(f"  {_readable(answer)}")
        finally:
            server.terminate()
            server.wait(timeout=30)
    say("The server is stopped.")
    return answers


def _served_url(server: subprocess.Popen, say: Callable[[str], None]) -> str:
    """Reads the server's lines until it names its address."""
    for line in server.stdout or ():
        say(line.rstrip())
        if found := re.search(r"http://\S+/v1/models/\w+", line):
            return found[0]
    raise InputError(f"the server ended with code {server.wait()} before it was ready")


def _readable(answer: dict[str, Any]) -> str:
    """One line for the first mask: words with their probabilities."""
    pairs = zip(answer["top_tokens"][0], answer["top_probabilities"][0], strict=True)
    return "   ".join(f"{token} {probability:.3f}" for token, probability in pairs)


def _questions_from(texts: Sequence[str]) -> list[str]:
    """Takes three sentences of the user's own text, spread over it, and masks a word in the middle of each."""
    sentences = [words for words in _sentences(texts) if 6 <= len(words) <= 40] or [["a", "b"]]
    questions = []
    for part in (1, 3, 5):
        words = list(sentences[len(sentences) * part // 6])
        words[len(words) // 2] = "[MASK]"
        questions.append(" ".join(words))
    return questions


def _sentences(texts: Sequence[str]) -> Iterator[list[str]]:
    for path in texts:
        with Path(path).open(encoding="utf-8") as file:
            for line, _ in zip(file, range(100_000), strict=False):
                yield from (sentence.split() for sentence in re.split(r"(?<=[.!?]) ", line))
