"""The options of a runner, as they are given on the command line, checked before anything runs."""

import argparse
import shlex
from typing import NoReturn

from apache_beam import Pipeline
from apache_beam.options.pipeline_options import PipelineOptions, StandardOptions, WorkerOptions

from keras_bert_impl.errors import InputError

# They ask their job server, when the pipeline is handed over, which further options there are.
_WITH_SERVER = ("portable", "flink", "spark", "prism")


def open_pipeline(options: str) -> Pipeline:
    """Returns an empty pipeline for a runner.

    Args:
        options: as for a shell, such as `"--runner=DirectRunner --direct_num_workers=2"`.

    Raises:
        InputError: if they are not what the runner takes.
    """

    def refuse(message: str) -> NoReturn:
        raise InputError(f"`beam` must be options of a runner of Apache Beam. Received: {options!r} ({message})")

    try:
        words = shlex.split(options)
    except ValueError as error:
        refuse(str(error))
    parser = _parser_of_all_options()
    parser.error = refuse  # type: ignore[method-assign]
    unknown = parser.parse_known_args(words)[1]
    parsed = PipelineOptions(words)
    runner = (parsed.view_as(StandardOptions).runner or StandardOptions.DEFAULT_RUNNER).lower().removesuffix("runner")
    if unknown and not (runner.endswith(_WITH_SERVER) and unknown[0].startswith("--")):
        refuse(f"not known: {' '.join(unknown)}")
    if runner in ("direct", "switchingdirect"):
        # By that name Beam would first try Prism, a program that it downloads.
        parsed.view_as(StandardOptions).runner = "FnApiRunner"
    logging = parsed.view_as(WorkerOptions)
    if runner.endswith("direct") and not logging.default_sdk_harness_log_level:
        logging.default_sdk_harness_log_level = "ERROR"  # Its workers write on the same screen.
    try:
        return Pipeline(options=parsed)
    except (ValueError, TypeError, ImportError, AttributeError) as error:
        refuse(" ".join(str(error).split()))


def runs_here(pipeline: Pipeline) -> bool:
    """Whether the runner is a local one, which works through the steps while it is called."""
    return type(pipeline.runner).__name__.lower().removesuffix("runner").endswith(("direct", "fnapi"))


def _parser_of_all_options() -> argparse.ArgumentParser:
    found: list[argparse.ArgumentParser] = []
    PipelineOptions([]).get_all_options(add_extra_args_fn=found.append)
    return found[0]
