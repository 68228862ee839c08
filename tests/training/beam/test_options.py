from pathlib import Path

import pytest
from beam_runs import need_beam, refused
from toy_data import toy_config

need_beam()

from apache_beam import Pipeline
from apache_beam.options.pipeline_options import DirectOptions

from keras_bert_impl.training.beam.options import open_pipeline


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ("--runner=NoRunner", "Unexpected pipeline runner: NoRunner. Valid values are "),
        ("--runner=no.such.Runner", "No module named 'no'"),
        ("--runner", "argument --runner: expected one argument"),
        ("--runner='x", "No closing quotation"),
        ("--direct_num_workers=two", "argument --direct_num_workers: invalid int value: 'two'"),
        ("--runner=DirectRunner --num_werkers=2", "not known: --num_werkers=2"),
        ("DirectRunner", "not known: DirectRunner"),
        ("--runner=FlinkRunner cluster", "not known: cluster"),
        ("--runner=DataflowRunner", "Pipeline has validations errors: "),
    ],
)
def test_a_wrong_option_is_a_sentence(tmp_path: Path, options: str, reason: str):
    sentence = refused(toy_config(tmp_path), options)
    assert sentence.startswith("`beam` must be options of a runner of Apache Beam. Received: ")
    assert f"{options!r} ({reason}" in sentence or f'"{options}" ({reason}' in sentence


def test_a_runner_that_does_not_start_is_a_sentence(tmp_path: Path):
    sentence = refused(toy_config(tmp_path), "--runner=PortableRunner")
    assert sentence.startswith(
        "`beam` must name a runner that can be started. Received: '--runner=PortableRunner' (You must specify a "
    )


def test_a_pipeline_that_was_stopped_elsewhere_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    class Cancelled:
        def wait_until_finish(self) -> str:
            return "CANCELLED"

    monkeypatch.setattr(Pipeline, "run", lambda pipeline: Cancelled())
    assert refused(toy_config(tmp_path), "--runner=DirectRunner") == (
        "`beam` must let the pipeline come to its end. Received: '--runner=DirectRunner', where it was CANCELLED"
    )


def test_options_of_a_runner_pass_through():
    pipeline = open_pipeline("--runner=DirectRunner --direct_num_workers=3")
    assert pipeline.options.view_as(DirectOptions).direct_num_workers == 3
    assert "--flink_own=1" in open_pipeline("--runner=FlinkRunner --flink_own=1").options._flags


@pytest.mark.parametrize("options", ["", "--runner=DirectRunner", "--runner=SwitchingDirectRunner"])
def test_the_local_runner_is_never_one_that_beam_downloads(options: str):
    assert type(open_pipeline(options).runner).__name__ == "FnApiRunner"
