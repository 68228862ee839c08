"""The playground is one page with nothing from elsewhere, and has a form for every kind of model."""

import json
import re
from pathlib import Path
from types import SimpleNamespace

import anyio
import httpx
import pytest
from json_faults import faults_of

from keras_bert_impl.serving.server.playground import PATHS, Playground
from keras_bert_impl.serving.server.playground import playground as module
from keras_bert_impl.serving.server.rest.api import RestApi
from keras_bert_impl.serving.version_status import VersionStatus

PAGE = Path(module.__file__).parent / "page"
DESCRIPTION = {
    "kind": "classification",
    "tokenizer": {"mask_token": "[MASK]"},
    "truncation": "a text of more than 9 pieces keeps its first ones, and `truncated` is true",
    "signatures": {
        "serving_default": {"inputs": {"text": {}}, "example": {"request": {"instances": ["a text"]}}},
        "attention": {"inputs": {"text": {}}},
    },
}


class Store:
    def status(self, name: str) -> list[VersionStatus]:
        states = {"films": [(12, "END"), (3, "AVAILABLE")], "gone": [(1, "END")]}[name]
        return [VersionStatus(version, state) for version, state in states]


def playground(directory: Path, *names: str) -> Playground:
    return Playground({name: directory for name in names}, Store())


@pytest.fixture
def export(tmp_path: Path) -> Path:
    extra = tmp_path / "3" / "assets.extra"
    extra.mkdir(parents=True)
    (extra / "signature.json").write_text(json.dumps(DESCRIPTION))
    return tmp_path


def models(page: Playground) -> list[dict]:
    return json.loads(page.answer("/playground/models.json").body)["models"]


def test_models_are_listed_with_what_the_page_must_know(export):
    assert models(playground(export, "films", "gone")) == [
        {
            "name": "films",
            "versions": [3],
            "kind": "classification",
            "inputs": ["text"],
            "attention_inputs": ["text"],
            "example": {"text": "a text"},
            "mask_token": "[MASK]",
            "truncation": DESCRIPTION["truncation"],
        },
        {"name": "gone", "versions": []},
    ]


def test_models_without_a_description_or_with_a_damaged_one_are_listed_without_kind(export):
    description = export / "3" / "assets.extra" / "signature.json"
    for text in faults_of(DESCRIPTION):
        description.write_text(text)
        [listed] = models(playground(export, "films"))
        assert (listed["name"], listed["versions"]) == ("films", [3])
    description.unlink()
    assert models(playground(export, "films")) == [{"name": "films", "versions": [3]}]


@pytest.mark.parametrize("path", ["/playground/nothing", "/playground/../playground.py", "/playground/page.html/"])
def test_other_paths_are_not_there(tmp_path, path):
    answer = playground(tmp_path).answer(path)
    assert (answer.status, json.loads(answer.body)) == (404, {"error": "There is no such page"})


def test_the_server_answers_with_the_page_and_forbids_it_everything_from_elsewhere(export):
    api = RestApi(SimpleNamespace(), Store(), pages=dict.fromkeys(PATHS, playground(export, "films")))

    async def ask() -> None:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(api), base_url="http://here") as client:
            for path in ("/", "/playground", "/playground/page.js", "/playground/models.json", "/playground/nothing"):
                answer = await client.get(path)
                policy = answer.headers["content-security-policy"]
                assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'; ")
                assert "unsafe" not in policy and "http" not in policy and "*" not in policy
                assert answer.headers["x-content-type-options"] == "nosniff"
            assert (await client.get("/")).headers["content-type"] == "text/html; charset=utf-8"
            assert (await client.head("/playground/page.css")).status_code == 200
            refused = await client.post("/", json={})
            assert (refused.status_code, refused.json()) == (405, {"error": "The playground is only read"})

    anyio.run(ask)


def test_the_page_opens_nothing_from_elsewhere_and_makes_no_markup_of_texts():
    files = {path.name: path.read_text(encoding="utf-8") for path in PAGE.iterdir()}
    for name, text in files.items():
        addresses = set(re.findall(r"[a-z]+://[^\s\"'`]+|[\"'(]//[^\s\"'`]+", text))
        assert addresses <= {"http://www.w3.org/2000/svg"}, name
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function", text), (
            name
        )
    assert not re.search(r"<script(?![^>]*\bsrc=)|\bon[a-z]+=|\bstyle=|javascript:", files["page.html"])


def test_every_file_that_the_page_names_is_there():
    answers = playground(Path())
    for path in PAGE.iterdir():
        named = re.findall(r'(?:src|href)="(/[^"]*)"|from "\.(/[^"]*)"', path.read_text(encoding="utf-8"))
        for absolute, relative in named:
            assert answers.answer(absolute or f"/playground{relative}").status == 200


def test_every_kind_of_model_has_a_form():
    from keras_bert_impl.serving import kinds

    forms = set(re.findall(r'<form data-form="([^"]+)"', (PAGE / "page.html").read_text(encoding="utf-8")))
    known = {kind.name for kind in vars(kinds).values() if isinstance(kind, kinds.Kind)}
    assert len(known) == 5 and forms == known | {"attention", "other"}
    script = (PAGE / "page.js").read_text(encoding="utf-8")
    for name in known | {"attention"}:
        assert re.search(rf'^  "?{name}"?[,:]', script, re.M), name


def test_the_local_server_shows_the_page(small_server):
    root = small_server.partition("/v1/")[0]
    assert "<title>Playground</title>" in httpx.get(f"{root}/", trust_env=False).text
    listed = httpx.get(f"{root}/playground/models.json", trust_env=False).json()
    assert listed == {"models": [{"name": "small", "versions": [3]}]}
