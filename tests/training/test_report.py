import importlib.util
import math
import re

import pytest
from pretraining_runs import small_config

from keras_bert_impl.training import report
from keras_bert_impl.training.report import curves_figure, draw_curves, write_report

RECORD = {
    "mlm_loss": 4.5,
    "mlm_accuracy": 0.21,
    "mlm_perplexity": 90.0,
    "unigram_loss": 6.25,
    "nsp_loss": 0.6,
    "nsp_accuracy": 0.7,
    "nsp_true_next_share": 0.53,
    "nsp_random_next_share": 0.47,
    "predicted_tokens": 11574,
    "examples": 624,
}


def line(step, phase=1, held_out=False):
    values = {"loss": 6.0 / step, "mlm_loss": 5.0 / step, "mlm_accuracy": 0.1, "nsp_loss": 0.7, "nsp_accuracy": 0.5}
    values |= {f"held_out_{name}": value for name, value in values.items()} if held_out else {}
    values |= {"held_out_unigram_loss": 6.25, "held_out_nsp_majority_share": 0.53} if held_out else {}
    rate = None if step == 1 else 100.0
    return {
        "step": step,
        "phase": phase,
        "length": 16 * phase,
        "learning_rate": 1e-3,
        "examples_per_second": rate,
    } | values


LINES = [line(1), line(2, held_out=True), line(3, phase=2), line(4, phase=2, held_out=True)]


@pytest.fixture(scope="module")
def html(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    config = small_config("data <here>", "run")
    assert (
        write_report(path, config, LINES, {"steps": 4, "best_step": 4, "held_out": {"16": RECORD}}) == f"Report: {path}"
    )
    return path.read_text(encoding="utf-8")


def test_report_shows_the_curves_against_what_is_had_without_learning(html):
    for text in ("MLM loss", "NSP accuracy", "Learning rate", "unigram model", "held out", "commoner label"):
        assert f">{text}</text>" in html, text


def test_without_next_sentence_prediction_nothing_is_shown_of_it(tmp_path):
    lines = [{name: value for name, value in line.items() if "nsp" not in name} for line in LINES]
    record = {name: value for name, value in RECORD.items() if "nsp" not in name}
    write_report(
        tmp_path / "report.html",
        small_config("data", "run"),
        lines,
        {"steps": 4, "best_step": 4, "held_out": {"16": record}},
    )
    html = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "NSP" not in html and "next</th>" not in html
    assert ">MLM loss</text>" in html and "6.2500" in html


def test_next_sentence_figures_are_drawn_against_the_share_of_the_commoner_label():
    axes = {axes.get_title(loc="left"): axes for axes in curves_figure(LINES).axes}
    for title, label, expected in [
        ("NSP accuracy", "commoner label", 0.53),
        ("NSP loss", "label shares", -0.53 * math.log(0.53) - 0.47 * math.log(0.47)),
    ]:
        line = next(line for line in axes[title].get_lines() if line.get_label() == label)
        assert list(line.get_ydata()) == pytest.approx([expected] * 2)


def test_no_legend_covers_a_curve_or_a_title():
    figure = curves_figure(LINES)
    figure.draw_without_rendering()
    legends = 0
    for axes in figure.axes:
        if legend := axes.get_legend():
            legends += 1
            box, title = legend.get_window_extent(), axes._left_title.get_window_extent()
            assert box.y0 >= axes.get_window_extent().y1 and box.x0 > title.x1, axes.get_title(loc="left")
    assert legends == 5


def test_lines_of_an_older_run_without_label_shares_are_drawn():
    older = [{name: value for name, value in line.items() if "majority" not in name} for line in LINES]
    assert draw_curves(older, form="png").startswith(b"\x89PNG")


def test_report_shows_the_held_out_table_and_the_settings(html):
    for cell in ("4.5000", "6.2500", "21.0%", "53.0%", "47.0%", "11,574"):
        assert f">{cell}</td>" in html
    assert "<td>learning_rate</td><td>0.005</td>" in html
    assert "length 16, share 0.75" in html


def test_report_needs_nothing_beside_it_and_escapes_what_users_gave(html):
    assert not re.search(r"<(script|link|img)\b|url\(http|@import", html)
    assert "data &lt;here&gt;" in html and "<here>" not in html


def test_report_of_a_run_without_held_out_documents(tmp_path):
    write_report(tmp_path / "r.html", small_config("d", "r"), LINES[:1], {"steps": 1, "best_step": 1, "held_out": {}})
    assert "no held-out documents" in (tmp_path / "r.html").read_text(encoding="utf-8")


def test_curves_can_be_drawn_as_a_picture():
    assert draw_curves(LINES, form="png").startswith(b"\x89PNG")


def test_without_the_extra_it_says_so_and_writes_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(report.importlib.util, "find_spec", lambda name: None if name == "jinja2" else importlib)
    sentence = write_report(tmp_path / "report.html", small_config("d", "r"), LINES, {})
    assert sentence == "No report: it needs the extra `report` (jinja2 not installed)."
    assert list(tmp_path.iterdir()) == []
