import importlib.util
import math
import re

import pytest
from pretraining_runs import small_config

from keras_bert_impl.training import report
from keras_bert_impl.training.phases import plan_phases
from keras_bert_impl.training.report import curves_figure, draw_curves, write_report
from keras_bert_impl.training.throughput import RATES

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
    values["mlm_perplexity"] = math.exp(5.0 / step)
    values |= {f"held_out_{name}": value for name, value in values.items()} if held_out else {}
    values |= {"held_out_unigram_loss": 6.25, "held_out_nsp_majority_share": 0.53} if held_out else {}
    speeds = (None,) * 4 if step == 1 else (100.0 * phase, 9000.0, 0.02, 0.45)
    return (
        {
            "step": step,
            "phase": phase,
            "length": 16 * phase,
            "replicas": 2,
            "learning_rate": 1e-3,
            "examples": 40,
            "tokens": 3600,
            "skipped_steps": 0,
        }
        | dict(zip(RATES, speeds, strict=True))
        | values
    )


LINES = [line(1), line(2, held_out=True), line(3, phase=2), line(4, phase=2, held_out=True)]


@pytest.fixture(scope="module")
def html(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    return written(path, LINES, {"16": RECORD}, small_config("data <here>", "run"), [(3, "it coughs & <sneezes>.")])


@pytest.fixture
def undrawn(monkeypatch):
    """Leaves out the curves, which take longest."""
    monkeypatch.setattr(report, "draw_curves", lambda lines: "<svg></svg>")


def titles_of(lines):
    return [axes.get_title(loc="left") for axes in curves_figure(lines).axes]


def written(path, lines, held_out, config=None, sicknesses=()):
    """Writes the report of a run of four steps and returns its text."""
    config = config or small_config("data", "run")
    metrics = {"steps": 4, "best_step": 4, "held_out": held_out}
    assert write_report(path, config, lines, metrics, plan_phases(config), sicknesses) == f"Report: {path}"
    return path.read_text(encoding="utf-8")


def test_report_shows_the_curves_against_what_is_had_without_learning(html):
    for text in ("MLM loss", "NSP accuracy", "Learning rate", "unigram model", "held out", "commoner label"):
        assert f">{text}</text>" in html, text


def test_without_next_sentence_prediction_nothing_is_shown_of_it(tmp_path):
    lines = [{name: value for name, value in line.items() if "nsp" not in name} for line in LINES]
    record = {name: value for name, value in RECORD.items() if "nsp" not in name}
    html = written(tmp_path / "report.html", lines, {"16": record})
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
    assert legends == 6


def test_lines_of_an_older_run_without_label_shares_are_drawn():
    newer = ("majority", "perplexity", "tokens", "wait", "flops", "replicas", "skipped")
    older = [{name: value for name, value in line.items() if not any(word in name for word in newer)} for line in LINES]
    titles = titles_of(older)
    assert "Examples per second" in titles and "Real tokens per second" not in titles


def test_report_shows_the_held_out_table_and_the_settings(html):
    for cell in ("4.5000", "6.2500", "21.0%", "53.0%", "47.0%", "11,574"):
        assert f">{cell}</td>" in html
    assert "<td>learning_rate</td><td>0.005</td>" in html
    assert "length 16, share 0.75" in html


def test_report_needs_nothing_beside_it_and_escapes_what_users_gave(html):
    assert not re.search(r"<(script|link|img)\b|url\(http|@import", html)
    assert "data &lt;here&gt;" in html and "<here>" not in html


def test_report_of_a_run_without_held_out_documents(tmp_path, undrawn):
    assert "no held-out documents" in written(tmp_path / "r.html", LINES[:1], {})


def test_curves_can_be_drawn_as_a_picture():
    assert draw_curves(LINES, form="png").startswith(b"\x89PNG")


def test_without_the_extra_it_says_so_and_writes_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "jinja2" else importlib)
    sentence = write_report(tmp_path / "report.html", small_config("d", "r"), LINES, {}, [])
    assert sentence == "No report: it needs the extra `report` (jinja2 not installed)."
    assert list(tmp_path.iterdir()) == []


def test_each_phase_is_told_with_its_plan_and_its_median_speeds(html):
    rows = re.findall(r"<tr><td>(.*?)</td></tr>", html)
    cells = [re.split(r"</td><td[^>]*>", row) for row in rows]
    assert ["1", "1 to 9", "16", "8", "100", "9,000", "2.0%", "45.0%"] in cells
    assert ["2", "10 to 12", "32", "4", "200", "9,000", "2.0%", "45.0%"] in cells


def test_a_phase_whose_speed_is_not_known_has_none(tmp_path, undrawn):
    assert written(tmp_path / "r.html", LINES[:1], {}).count("–</td>") == 8


def test_what_the_run_was_warned_of_is_told(html, tmp_path, undrawn):
    assert "<h2>Warnings</h2>" in html and "<li>Step 3: it coughs &amp; &lt;sneezes&gt;.</li>" in html
    assert "Warnings" not in written(tmp_path / "r.html", LINES, {})


def test_what_was_read_is_told(html):
    assert "160 examples with 14,400 real tokens were read" in html and "Replicas: 2; dtype float32." in html


def test_skipped_steps_and_the_scale_of_the_loss_are_shown_where_there_are_any(tmp_path, undrawn):
    lines = [line | {"skipped_steps": 3, "loss_scale": 1024.0} for line in LINES]
    assert "not finite: 3." in written(tmp_path / "r.html", lines, {})
    assert {"Skipped steps", "Loss scale"} <= set(titles_of(lines))
    assert not {"Skipped steps", "Loss scale"} & set(titles_of(LINES))


def test_perplexity_is_drawn_on_a_logarithmic_scale_with_that_of_the_unigram_model():
    axes = next(axes for axes in curves_figure(LINES).axes if axes.get_title(loc="left") == "Perplexity")
    assert axes.get_yscale() == "log"
    plateau = next(line for line in axes.get_lines() if line.get_label() == "unigram model")
    assert list(plateau.get_ydata()) == pytest.approx([math.exp(6.25)] * 2)
