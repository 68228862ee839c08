"""The report of a fine-tuning: what it shows, and that nothing of the data becomes HTML."""

import importlib.util
import re

import pytest

from keras_bert_impl.training.configs import FinetuneConfig
from keras_bert_impl.training.finetuning import report
from keras_bert_impl.training.finetuning.report import write_report
from keras_bert_impl.training.finetuning.task import Evaluation

LINES = [
    {
        "seed": seed,
        "step": step,
        "loss": 1.0 / step,
        "learning_rate": 1e-4 / step,
        "dev_cross_entropy": 0.5,
        "dev_accuracy": 0.7,
    }
    for seed in (1, 2)
    for step in (1, 2, 3)
]
SEEDS = [{"seed": 1, "best_epoch": 2.0, "accuracy": 0.5}, {"seed": 2, "best_epoch": 3.5, "accuracy": 0.75}]
LABELS = {"train": {"bad": 30, "<good>": 10}, "dev": {"bad": 3, "<good>": 1}}


def prediction(text, right, label, probability, **more):
    return {"text": text, "label": label, "probability": probability, "right": right} | more


EVALUATION = Evaluation(
    metrics={
        "accuracy": 0.75,
        "f1": None,
        "per_class": {"bad": {"precision": 1.0, "support": 3}, "<good>": {"precision": 0.25, "support": 1}},
    },
    predictions=[
        prediction("right as it is", "bad", "bad", 0.9),
        prediction("somewhat sure", "bad", "<good>", 0.6),
        prediction("<script>alert(1)</script> & more", "bad", "<good>", 0.99, id="row <7>"),
        prediction("x" * 300, "<good>", "bad", 0.7, text_pair="the second text"),
    ],
    warnings=["gives one class <alone>."],
    pictures={
        "confusion": {"labels": ["bad", "<good>"], "counts": [[2, 1], [0, 1]]},
        "reliability": {"confidence": [0.55, 0.75, 0.95], "accuracy": [0.5, 0.8, 0.9], "counts": [2, 0, 9]},
    },
)


def written(path, evaluation=EVALUATION, lines=LINES, seeds=SEEDS, labels=LABELS, grid=None, **settings):
    config = FinetuneConfig(**{"task": "classification", "model": "m", "train": ("a.tsv",), "output": "out"} | settings)
    more = {"warnings": ["seed 2 is odd"], **(grid or {})}
    assert write_report(path, config, lines, evaluation, seeds, labels, **more) == f"Report: {path}"
    return path.read_text(encoding="utf-8")


@pytest.fixture
def undrawn(monkeypatch):
    """Leaves out the curves, which take longest."""
    monkeypatch.setattr(report, "_drawn", lambda figure_of, values, *more: "<svg></svg>" if values else "")


@pytest.fixture(scope="module")
def html(tmp_path_factory):
    return written(tmp_path_factory.mktemp("report") / "report.html")


def cells(html):
    """The text of each row of every table."""
    return [
        " | ".join(
            re.sub(r"<[^>]*>", " ", cell).strip() for cell in re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row, re.S)
        )
        for row in re.findall(r"<tr.*?</tr>", html, re.S)
    ]


def test_report_shows_curves_and_reliability(html):
    for text in ("Loss", "Dev accuracy", "Learning rate", "training", "seed 2", "Share of right answers"):
        assert f">{text}</text>" in html, text
    assert html.count("<svg") == 2


def test_nothing_of_the_data_becomes_html(html):
    assert "<script" not in html and "<good>" not in html and "<alone>" not in html and "<7>" not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt; &amp; more" in html


def test_report_needs_nothing_beside_it(html):
    assert not re.search(r"(src|href)=\"(?!#)", html.replace("http://www.w3.org", ""))


def test_metrics_classes_labels_and_settings_are_told(html):
    rows = cells(html)
    assert "accuracy (chosen by) | 0.7500" in rows
    assert "f1 | not defined" in rows
    assert "&lt;good&gt; | 0.2500 | 1" in rows
    assert "&lt;good&gt; | 10 (25.0%) | 1 (25.0%)" in rows
    assert "task | classification" in rows


def test_each_seed_is_told_with_mean_and_deviation_of_what_was_measured(html):
    rows = cells(html)
    assert "1 | 2 | 0.5000" in rows and "2 | 3.5 | 0.7500" in rows
    assert "mean ± deviation |  | 0.6250 ± 0.1768" in rows


def test_warnings_of_seeds_and_evaluation_are_told(html):
    assert "<li>seed 2 is odd</li>" in html and "<li>gives one class &lt;alone&gt;.</li>" in html


def test_confusion_has_a_row_for_each_right_label(html):
    assert "bad | 2 | 1" in cells(html)


def test_wrong_answers_are_told_surest_first_and_cut(html):
    rows = [row for row in cells(html) if re.search(r"\| (bad|&lt;good&gt;) \| (bad|&lt;good&gt;) \| 0", row)]
    assert [row.split(" | ")[-1] for row in rows] == ["0.990", "0.700", "0.600"]
    assert "x" * 200 + "…" in html and "x" * 201 not in html
    assert "the second text" in html and "right as it is" not in html
    assert "3 of 4 answers are wrong" in html


def test_one_seed_has_no_deviation(undrawn, tmp_path):
    assert "deviation" not in written(tmp_path / "r.html", seeds=SEEDS[:1])


def test_only_the_words_in_question_of_wrong_tags_are_shown(undrawn, tmp_path):
    tags = {"words": ["Ann", "left", "Rome"], "tags": ["B-PER", "O", "O"], "right": ["B-PER", "O", "B-LOC"]}
    rows = cells(written(tmp_path / "r.html", Evaluation({"f1": 0.5}, [tags]), task="tagging", labels={}))
    assert "Ann left Rome | Rome B-LOC | Rome O |" in " ".join(rows)


def test_numbers_that_are_furthest_off_come_first(undrawn, tmp_path):
    rows = [{"text": text, "label": label, "right": 1.0} for text, label in (("near", 1.1), ("far", 4.0))]
    html = written(tmp_path / "r.html", Evaluation({"pearson": 0.5}, rows), task="regression", labels={})
    assert html.index('<td class="text">far') < html.index('<td class="text">near')
    assert "Answers that are furthest off" in html and "are wrong" not in html


def test_right_answers_of_a_question_are_told_by_correct_not_by_equality(undrawn, tmp_path):
    rows = [
        {"question": "who", "context": "the cat", "answer": "cat", "right": ["the cat", "a cat"], "correct": True},
        {"question": "when", "context": "the cat", "answer": "", "right": ["noon"], "correct": False},
    ]
    html = written(tmp_path / "r.html", Evaluation({"f1": 0.5}, rows), task="qa", labels={})
    assert "1 of 2 answers are wrong" in html and "| noon | none |" in " ".join(cells(html))


def test_a_model_without_wrong_answers_says_so(undrawn, tmp_path):
    assert "None." in written(tmp_path / "r.html", Evaluation({"accuracy": 1.0}, EVALUATION.predictions[:1]))


def test_many_labels_are_cut_to_the_commonest_and_said(undrawn, tmp_path):
    labels = [f"label{number}" for number in range(50)]
    counts = [[number if right == given else 0 for given in range(50)] for right, number in enumerate(range(50))]
    evaluation = Evaluation({"accuracy": 1.0}, [], pictures={"confusion": {"labels": labels, "counts": counts}})
    html = written(tmp_path / "r.html", evaluation)
    assert "The 10 rarest labels are not shown" in html and "label9<" not in html and "label10<" in html


def test_report_without_its_libraries_is_a_sentence(monkeypatch, tmp_path):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    config = FinetuneConfig(task="qa", model="m", train=("a",), output="o")
    sentence = write_report(tmp_path / "r.html", config, [], EVALUATION, [], {})
    assert sentence == "No report: it needs the extra `report` (matplotlib and jinja2 not installed)."


POINTS = [
    {"values": {"learning_rate": 1e-4, "batch_size": 8}, "mean": 0.5, "deviation": None, "seeds": []},
    {"values": {"learning_rate": 3e-4, "batch_size": 8}, "mean": 0.75, "deviation": None, "seeds": []},
    {"values": {"learning_rate": 1.0, "batch_size": 8}, "mean": None, "deviation": None, "given_up": "infinite"},
]


def test_a_grid_is_told_with_all_its_points_and_the_chosen_one(undrawn, tmp_path):
    html = written(tmp_path / "r.html", grid={"points": POINTS, "chosen": POINTS[1]["values"]})
    table = ["learning rate | batch size | accuracy |", "0.0003 | 8 | 0.7500 | chosen", "0.0001 | 8 | 0.5000 |"]
    rows = [row.rstrip() for row in cells(html)]
    place = rows.index(table[0])
    assert rows[place : place + 4] == [*table, "1 | 8 | given up |"]
    assert "chosen among 3 combinations: learning rate 0.0003, batch size 8" in html
    assert "grid | learning_rate 0.0001, 0.0003, 1; batch_size 8" in rows
    assert "combinations" not in written(tmp_path / "without.html")


def test_a_column_of_names_is_there_only_where_rows_have_names(html, undrawn, tmp_path):
    assert "<th>Id</th>" in html
    nameless = Evaluation({"accuracy": 0.0}, EVALUATION.predictions[1:2])
    assert "<th>Id</th>" not in written(tmp_path / "r.html", nameless)


def test_counts_beside_the_metrics_are_explained(undrawn, tmp_path):
    rows = cells(written(tmp_path / "r.html", Evaluation({"accuracy": 0.5, "truncated": 3}, [])))
    assert "texts cut off, longer than the model&#39;s rows | 3" in rows
