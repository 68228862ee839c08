"""What the page shows in a browser, of answers that a server without models gives."""

import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from browsers import browser, document_of

from keras_bert_impl.serving.server.playground import Playground
from keras_bert_impl.serving.server.playground.playground import HEADERS
from keras_bert_impl.serving.version_status import VersionStatus

PROGRAM = browser()
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(PROGRAM is None, reason="there is no Chromium, nor KERAS_BERT_BROWSER that names one"),
]

EVIL = "<img src=x onerror=\"document.title='broken into'\"><b>&amp;</b>"
FACTS = {"num_tokens": 9, "truncated": False}
# By model: kind, inputs, what a person types, and what the server answers.
CASES: dict[str, tuple[str | None, dict[str, str], Any]] = {
    "masks": (
        "fill-mask",
        {"text": f"💥 [MASK] is {EVIL} [MASK]."},
        [
            {
                "mask_positions": [1, 5],
                "top_tokens": [["paris", EVIL], ["city", "town"]],
                "top_probabilities": [[0.75, 0.125], [0.5, 0.25]],
                **FACTS,
            }
        ],
    ),
    "films": (
        "classification",
        {"text": "fine", "text_pair": "well"},
        [{"labels": ["bad", EVIL], "probabilities": [0.2, 0.8], "label": EVIL, **FACTS}],
    ),
    "topics": (
        "classification",
        {"text": "fine"},
        [{"labels": ["a", "b", "c"], "probabilities": [0.9, 0.1, 0.7], "holds": [True, False, True], **FACTS}],
    ),
    "stars": ("classification", {"text": "fine"}, [{"value": 3.14159274, **FACTS, "truncated": True}]),
    "names": (
        "tagging",
        {"text": "𝒳 Ada Lovelace 💥 lives in 東京!"},
        [
            {
                "words": ["𝒳", "Ada", "Lovelace", "lives", "in", "東京", ""],
                "tags": ["O", "B-PER", "I-PER", "O", "O", "B-LOC", ""],
                "start": [0, 2, 6, 17, 23, 26, -1],
                "end": [1, 5, 14, 22, 25, 28, -1],
                "probabilities": [0.9, 0.8, 0.6, 0.9, 0.9, 0.7, 0.0],
                **FACTS,
            }
        ],
    ),
    "answers": (
        "question answering",
        {"question": "Where?", "context": f"💥💥 {EVIL} she lives in London now"},
        [
            {
                "answer": "London",
                "start": len(EVIL) + 17,
                "end": len(EVIL) + 23,
                "probability": 0.625,
                "score": 5.0,
                **FACTS,
            }
        ],
    ),
    "none": (
        "question answering",
        {"question": "Where?", "context": "💥 nowhere"},
        [{"answer": "", "start": 0, "end": 0, "probability": 0.9, "score": 1.0, "null_score": 1.0, **FACTS}],
    ),
    "vectors": (
        "embedding",
        {"text": f"one\n{EVIL}\n\nthree"},
        [{"sentence_embedding": vector, **FACTS} for vector in ([1.0, 0.0], [0.6, 0.8], [0.0, 1.0])],
    ),
    "refusing": ("classification", {"text": "a"}, None),
    "elsewhere": (None, {"request": '{"instances": [1]}'}, [[1.5, EVIL]]),
}
HEADS = [[[[0.9, 0.1], [0.25, 0.75]], [[0.0, 1.0], [1.0, 0.0]]]]

# Goes through the models as a person would, and writes down what is seen.
SCRIPT = """
const wait = () => new Promise((done) => setTimeout(done, 20));
const seen = { violations: 0, models: {} };
document.addEventListener("securitypolicyviolation", () => { seen.violations += 1; });
async function settle() { do { await wait(); } while (document.body.dataset.state !== "ready"); }
function visible(node) { return node.checkVisibility(); }
async function submit(form, typed) {
  for (const [name, value] of Object.entries(typed)) form.elements[name].value = value;
  document.body.dataset.state = "asking";
  form.querySelector("button:not([type])").click();
  await settle();
}
async function run() {
  await settle();
  const cases = await (await fetch("/cases.json")).json();
  const select = document.getElementById("model");
  for (const [i, [name, typed]] of cases.entries()) {
    select.selectedIndex = i;
    select.dispatchEvent(new Event("change"));
    const shown = [...document.querySelectorAll("form")].filter(visible);
    const [form] = shown;
    const found = { form: form.dataset.form, facts: document.getElementById("facts").textContent };
    found.fields = [...form.querySelectorAll("textarea")].filter(visible).map((field) => field.name);
    found.example = form.querySelector("textarea").value;
    await submit(form, typed);
    const answer = document.querySelector("[data-answer=model]");
    found.text = answer.innerText;
    found.text_of = [...answer.querySelectorAll(".text")].map((node) => node.textContent);
    found.marks = [...answer.querySelectorAll("mark, .blank")].map((node) => node.firstChild.textContent);
    found.marked = [...answer.querySelectorAll("mark small")].map((node) => node.textContent);
    found.chosen = [...answer.querySelectorAll(".chosen th")].map((node) => node.textContent);
    found.bars = [...answer.querySelectorAll(".bar")].map((node) => node.style.width);
    found.widths = [...answer.querySelectorAll(".bar")].map((node) => node.getBoundingClientRect().width);
    found.images = document.images.length;
    if (shown.length > 1) {
      await submit(shown[1], { text: "a" });
      const picture = document.querySelector("[data-answer=attention]");
      const [first] = picture.querySelectorAll("canvas");
      found.canvases = picture.querySelectorAll("canvas").length;
      found.pixels = [...first.getContext("2d").getImageData(0, 0, 2, 1).data];
      picture.querySelectorAll(".heads button")[1].click();
      picture.querySelectorAll(".tokens button")[1].click();
      found.looks = picture.querySelector("p:nth-of-type(2)").textContent;
    }
    seen.models[name] = found;
  }
  seen.title = document.title;
  const result = document.createElement("script");
  result.type = "application/json";
  result.id = "seen";
  result.textContent = JSON.stringify(seen).replaceAll("<", "\\\\u003c");
  document.body.append(result);
}
run();
"""


class Store:
    def status(self, name: str) -> list[VersionStatus]:
        return [VersionStatus(1, "AVAILABLE")]


def write_export(directory: Path, kind: str, typed: dict[str, str], attention: bool) -> None:
    extra = directory / "1" / "assets.extra"
    extra.mkdir(parents=True)
    inputs = {name: {} for name in typed}
    signatures = {
        "serving_default": {"inputs": inputs, "example": {"request": {"instances": [dict.fromkeys(typed, "e.g.")]}}}
    }
    if attention:
        signatures["attention"] = {"inputs": inputs}
    description = {
        "kind": kind,
        "tokenizer": {"mask_token": "[MASK]"},
        "truncation": "a text of more than 9 pieces keeps its first ones, and `truncated` is true",
        "signatures": signatures,
    }
    (extra / "signature.json").write_text(json.dumps(description))


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, directory: Path) -> None:
        models = {}
        for name, (kind, typed, _) in CASES.items():
            models[name] = directory / name
            models[name].mkdir()
            if kind:
                write_export(models[name], kind, typed, attention=name == "masks")
        self.playground = Playground(models, Store())
        self.asked: dict[str, Any] = {}
        super().__init__(("127.0.0.1", 0), Handler)


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        if self.path == "/test.js":
            self.send(200, "text/javascript", SCRIPT.encode())
        elif self.path == "/cases.json":
            cases = [[name, typed] for name, (_, typed, _) in CASES.items()]
            self.send(200, "application/json", json.dumps(cases).encode())
        else:
            answer = self.server.playground.answer(self.path)
            body = answer.body.replace(b"</body>", b'<script type="module" src="/test.js"></script></body>')
            self.send(answer.status, answer.media_type, body)

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        name = unquote(self.path.removeprefix("/v1/models/").removesuffix(":predict"))
        if request.get("signature_name") == "attention":
            rows: Any = [{"tokens": ["[CLS]", EVIL, ""], "attention": HEADS, **FACTS}]
        else:
            self.server.asked[name] = request
            rows = CASES[name][2]
        if rows is None:
            self.send(400, "application/json", json.dumps({"error": f"Not so: {EVIL}"}).encode())
        else:
            self.send(200, "application/json", json.dumps({"predictions": rows}).encode())

    def send(self, status: int, media_type: str, body: bytes) -> None:
        self.send_response(status)
        for name, value in {**HEADERS, "Content-Type": media_type, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: Any) -> None:
        pass


@pytest.fixture(scope="module")
def server(tmp_path_factory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("exports")) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def seen(server) -> dict[str, Any]:
    document = document_of(f"http://127.0.0.1:{server.server_address[1]}/", PROGRAM, seconds=30)
    found = re.search(r'<script type="application/json" id="seen">(.*?)</script>', document, re.S)
    assert found, document[-3000:]
    return json.loads(found[1])


def test_no_text_becomes_markup_and_nothing_is_loaded_from_elsewhere(seen):
    assert (seen["title"], seen["violations"]) == ("Playground", 0)
    assert all(model["images"] == 0 for model in seen["models"].values())


def test_each_kind_shows_its_form_with_its_inputs_and_the_example(seen):
    for name, (kind, typed, _) in CASES.items():
        model = seen["models"][name]
        assert (model["form"], model["fields"]) == (kind or "other", list(typed)), name
        assert model["facts"] == f"version 1, {kind or 'of a kind that this page does not know'}"
        assert model["example"] == ("e.g." if kind else '{"instances": ["a text"]}')


def test_the_page_asks_what_was_typed(seen, server):
    for name, (kind, typed, _) in CASES.items():
        lines = [{"text": text} for text in typed["text"].split("\n") if text] if kind == "embedding" else [typed]
        expected = {"signature_name": "serving_default", "instances": lines} if kind else {"instances": [1]}
        assert server.asked[name] == expected, name


def test_masks_are_filled_in_the_text_and_have_bars(seen):
    model = seen["models"]["masks"]
    assert model["text_of"] == [f"💥 paris1 is {EVIL} city2."]
    assert model["marks"] == ["paris", "city"]
    assert model["bars"] == ["75%", "12.5%", "50%", "25%"]
    assert model["chosen"] == ["paris", "city"]
    longest, *others = model["widths"]
    assert longest > 200
    assert [width / longest for width in others] == pytest.approx([1 / 6, 2 / 3, 1 / 3], rel=0.01)


def test_labels_are_sorted_by_probability(seen):
    assert seen["models"]["films"]["chosen"] == [EVIL]
    assert seen["models"]["films"]["bars"] == ["80%", "20%"]
    assert (seen["models"]["topics"]["chosen"], seen["models"]["topics"]["bars"]) == (["a", "c"], ["90%", "70%", "10%"])


def test_a_number_is_shown_and_that_a_text_was_cut(seen):
    assert "3.1416" in seen["models"]["stars"]["text"]
    cut = "Not all was read, but 9 tokens with [CLS] and [SEP]: a text of more than 9 pieces keeps its first ones."
    assert cut in seen["models"]["stars"]["text"]


def test_spans_stand_where_the_server_says_in_code_points(seen):
    model = seen["models"]["names"]
    assert model["marks"] == ["Ada Lovelace", "東京"]
    assert model["marked"] == ["PER", "LOC"]
    assert model["text_of"] == ["𝒳 Ada LovelacePER 💥 lives in 東京LOC!"]


def test_an_answer_is_marked_in_its_context(seen):
    assert seen["models"]["answers"]["marks"] == ["London"]
    assert seen["models"]["answers"]["text_of"] == [CASES["answers"][1]["context"]]
    assert (seen["models"]["none"]["marks"], seen["models"]["none"]["text_of"]) == ([], ["💥 nowhere"])
    assert seen["models"]["none"]["text"].startswith("No answer")


def test_sentences_are_compared(seen):
    text = seen["models"]["vectors"]["text"]
    assert f"2. {EVIL}" in text
    assert re.findall(r"\d\.\d{3}", text) == "1.000 0.600 0.000 0.600 1.000 0.800 0.000 0.800 1.000".split()


def test_a_refusal_is_shown_in_the_servers_words(seen):
    assert seen["models"]["refusing"]["text"] == f"Not so: {EVIL}"


def test_a_model_of_elsewhere_is_asked_in_json(seen):
    assert json.loads(seen["models"]["elsewhere"]["text"]) == {"predictions": [[1.5, EVIL]]}


def test_heads_are_drawn_and_say_what_they_look_at(seen):
    model = seen["models"]["masks"]
    assert model["canvases"] == 2
    dark, light = model["pixels"][:3], model["pixels"][4:7]
    assert sum(dark) < sum(light)
    assert model["looks"] == f"Layer 1, head 2: {EVIL} looks most at [CLS] (100.0 %)."
