"""The pipeline, and what is done before and after it.

```
files → facts of their documents → one decision on all → documents by block → shards
```
"""

import pickle
from collections.abc import Callable
from typing import Any

import apache_beam as beam
from apache_beam.runners.runner import PipelineState

from keras_bert_impl.errors import InputError

from ..configs import PrepareConfig
from ..corpus.chinese_words import check_jieba
from ..corpus.input_files import SourceFile
from ..corpus.readers import Reading
from ..corpus.survey import Survey
from ..corpus.wording import counted
from ..examples.manifest import Counts, exclusion_lines, summary_lines, survey_line
from ..examples.word_boundaries import JIEBA
from ..prepare import load_tokenizer, reading_of_excluded, write_manifest, writing_output
from .files import find_everywhere, join, read_file
from .options import open_pipeline, runs_here
from .output import Output, check_new_output, new_output
from .steps import (
    BLOCK,
    MISTAKE,
    RESULTS,
    SURVEY,
    TOKENS,
    CutIntoBlocks,
    Decide,
    FindFacts,
    Gather,
    MakeShards,
    open_exclusion,
)

_GATHERED = "results"


def prepare_data(config: PrepareConfig, options: str, say: Callable[[str], None]) -> dict[str, Any]:
    """Does what `beam_prepare.prepare_with_beam` says."""
    pipeline = open_pipeline(options)
    if config.writes_records:
        wanted = "reference=True" if config.reference else f"format={config.format!r}"
        raise InputError(f"`beam` is for prepared data, without static masks. Received: {wanted}")
    check_new_output(config.output)
    tokenizer = load_tokenizer(config.vocab, cased=config.cased)
    if config.word_boundaries == JIEBA:
        check_jieba()
    if not config.inputs:
        raise InputError("`inputs` must name at least one text file. Received: inputs=()")
    files = find_everywhere(config.inputs, say=say)
    excluded = find_everywhere(config.exclude, argument="exclude", say=say)
    if excluded:
        open_exclusion(excluded, config.exclude_words, reading_of_excluded(config))  # Says what is wrong with them.
    say(f"Running a pipeline of Apache Beam for {counted(len(files), 'file')} ...")
    with writing_output(config), new_output(config.output) as output:
        tokenizer.save_pretrained(output.folder)
        _add_steps(pipeline, config, files, excluded, output)
        _run(pipeline, options)
        survey, counts, shards = _results(config, output, tokenizer.vocab_size)
        manifest = write_manifest(output.folder, config, survey, counts, tokenizer)
        output.complete(shards)
    for line in (
        *exclusion_lines(survey),
        survey_line(survey),
        *summary_lines(manifest),
        *manifest["notes"],
        f"Prepared data: {config.output}",
    ):
        say(line)
    return manifest


def _add_steps(
    pipeline: beam.Pipeline,
    config: PrepareConfig,
    files: list[SourceFile],
    excluded: list[SourceFile],
    output: Output,
) -> None:
    reading = Reading.of(config)
    near_duplicates = config.near_duplicates != "off"
    exclusion = (excluded, config.exclude_words, reading_of_excluded(config)) if excluded else None
    find_facts = FindFacts(reading, config.seed, near_duplicates=near_duplicates, excluded=exclusion)
    decision = {
        "seed": config.seed,
        "held_out_share": config.held_out_share,
        "near_duplicates": config.near_duplicates,
        "excluded": excluded,
    }
    decided = (
        pipeline
        | "Files" >> beam.Create([(number, pickle.dumps(file)) for number, file in enumerate(files)])
        | "Spread the files" >> beam.Reshuffle()
        | "Find facts" >> beam.ParDo(find_facts)
        | "To one place" >> beam.WithKeys(0)
        | "All facts" >> beam.GroupByKey()
        | "Decide" >> beam.ParDo(Decide(len(files), reading, decision)).with_outputs(RESULTS, main="files")
    )
    documents = (
        decided.files
        | "Spread the files again" >> beam.Reshuffle()
        | "Cut into blocks" >> beam.ParDo(CutIntoBlocks(reading)).with_outputs(RESULTS, main="documents")
    )
    tokenizer = {path.name: path.read_bytes() for path in output.folder.iterdir() if path.is_file()}
    shards = (
        documents.documents
        | "Blocks" >> beam.GroupByKey()
        | "Make shards" >> beam.ParDo(MakeShards(config, tokenizer, output.parts)).with_outputs(TOKENS, main="made")
    )
    tokens = shards[TOKENS] | "Sum the tokens" >> beam.CombinePerKey(sum) | beam.Map(lambda item: (TOKENS, item))
    (
        (decided[RESULTS], documents[RESULTS], shards.made, tokens)
        | "All results" >> beam.Flatten()
        | "Results to one place" >> beam.WithKeys(0)
        | "Group the results" >> beam.GroupByKey()
        | "Gather" >> beam.ParDo(Gather(join(output.parts, _GATHERED)))
    )


def _run(pipeline: beam.Pipeline, options: str) -> None:
    try:
        running = pipeline.run()
    except Exception as error:
        if runs_here(pipeline):  # So these are our own steps that fail.
            raise
        reason = " ".join(str(error).split())
        raise InputError(f"`beam` must name a runner that can be started. Received: {options!r} ({reason})") from error
    try:
        state = running.wait_until_finish()
    except KeyboardInterrupt:
        running.cancel()
        raise
    if state != PipelineState.DONE:
        raise InputError(f"`beam` must let the pipeline come to its end. Received: {options!r}, where it was {state}")


def _results(config: PrepareConfig, output: Output, vocab_size: int) -> tuple[Survey, Counts, dict[str, str]]:
    """Returns what the pipeline found, and the path of each shard's files by their names in the output."""
    try:
        results = pickle.loads(read_file(join(output.parts, _GATHERED)))
    except OSError as error:
        raise InputError(
            "`output` must be a place that this machine and every worker see. "
            f"Received: {config.output!r}, where the pipeline left nothing ({error.strerror or error})"
        ) from None
    if mistakes := [content for kind, content in results if kind == MISTAKE]:
        raise InputError(min(mistakes)[-1])
    (survey,) = (pickle.loads(content) for kind, content in results if kind == SURVEY)
    counts, shards = Counts(vocab_size), {}
    for kind, content in results:
        if kind == TOKENS:
            split, tokens = content
            counts.tokens[split] += tokens
        elif kind == BLOCK:
            block, attempt, names = pickle.loads(content)
            counts.add(block)
            shards.update({name: join(output.parts, attempt, name) for name in names})
    return survey, counts, shards
