import typing
from pathlib import Path

import pytest

from keras_bert_impl.errors import InputError
from keras_bert_impl.training.configs import (
    EvaluateConfig,
    FinetuneConfig,
    PredictConfig,
    PrepareConfig,
    PretrainConfig,
    VocabConfig,
)

PREPARE = {"inputs": ["a.txt"], "vocab": "vocab.txt", "output": "data"}
VOCAB = {"inputs": ["a.txt"], "output": "vocab.txt"}


def test_lists_become_tuples_and_come_back_from_plain_values():
    config = PrepareConfig.from_dict({**PREPARE, "lengths": [64]})
    assert (config.inputs, config.lengths) == (("a.txt",), (64,))
    assert PrepareConfig.from_dict(config.to_dict()) == config


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"inputs": "a.txt"}, r"`inputs` must be a list of files, not a single name\. Received: inputs='a\.txt'"),
        ({"exclude": "a.txt"}, r"`exclude` must be a list of files, not a single name\. Received: exclude='a\.txt'"),
        ({"input_format": "csv"}, r"`input_format` must be auto, txt, jsonl or parquet\. Received: input_format='csv'"),
        ({"documents": "page"}, r"`documents` must be blank-lines, file or line\. Received: documents='page'"),
        ({"text_field": ""}, r"`text_field` must be a name\. Received: text_field=''"),
        ({"on_bad_bytes": "drop"}, r"`on_bad_bytes` must be error or replace\. Received: on_bad_bytes='drop'"),
        ({"max_document_chars": 10}, r"`max_document_chars` must be a number of at least 1000 .*=10$"),
        ({"max_sentence_chars": 10}, r"`max_sentence_chars` must be a number of at least 100 .*=10$"),
        ({"near_duplicates": "drop"}, r"`near_duplicates` must be off, report or remove\. .*near_duplicates='drop'"),
        ({"exclude": ["-"]}, r"`exclude` must name files; standard input is for `inputs`\. Received: '-'"),
        ({"exclude_words": 0}, r"`exclude_words` must be a number of at least 1 .*Received: exclude_words=0"),
        ({"language": "xx"}, r"`language` must be one of am, .*, en, .*, zh; for another .* Received: language='xx'"),
        ({"lengths": 128}, r"`lengths` must be a list of whole numbers\. Received: lengths=128"),
        ({"lengths": "128"}, r"`lengths` must be a list of whole numbers\. Received: lengths='128'"),
        ({"lengths": ()}, r"`lengths` must be one or more different numbers\. Received: lengths=\(\)"),
        ({"lengths": (128, 128)}, r"`lengths` must be one or more different numbers\. .*\(128, 128\)"),
        ({"lengths": (7, 128)}, r"`lengths` must be from 8 to 65535\. Received: lengths=\(7, 128\)"),
        ({"lengths": (65536,)}, r"`lengths` must be from 8 to 65535\. Received: lengths=\(65536,\)"),
        ({"sentences": "words"}, r"`sentences` must be auto, lines or split\. Received: sentences='words'"),
        ({"workers": 0}, r"`workers` must be a number of at least 1\b.*\. Received: workers=0"),
        ({"passes": 0}, r"`passes` must be a number of at least 1\b.*\. Received: passes=0"),
        ({"held_out_share": 0.6}, r"`held_out_share` must be a number of at least 0 and at most 0\.5\. .*0\.6"),
        ({"short_seq_prob": -0.1}, r"`short_seq_prob` must be a number of at least 0 and at most 1\. .*-0\.1"),
        ({"next_sentence_prob": 1.1}, r"`next_sentence_prob` must be a number of at least 0 and at most 1\. .*1\.1"),
        (
            {"lenghts": (128,)},
            r"Unknown `PrepareConfig` keys: \['lenghts'\]\. Did you mean 'lengths'\? Known keys: \[.*'lengths'.*\]",
        ),
    ],
)
def test_prepare_settings_are_checked(values: dict, message: str):
    with pytest.raises(InputError, match=message):
        PrepareConfig.from_dict({**PREPARE, **values})


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"inputs": "a.txt"}, r"`inputs` must be a list of files, not a single name\. Received: inputs='a\.txt'"),
        ({"inputs": Path("a.txt")}, r"`inputs` must be a list of files, not a single name\. Received: .*a\.txt"),
        ({"documents": "page"}, r"`documents` must be blank-lines, file or line\. Received: documents='page'"),
        ({"on_bad_bytes": "drop"}, r"`on_bad_bytes` must be error or replace\. Received: on_bad_bytes='drop'"),
        ({"size": 5}, r"`size` must be a number of at least 6\b.*\. Received: size=5"),
        ({"min_frequency": 0}, r"`min_frequency` must be a number of at least 1\b.*\. Received: min_frequency=0"),
    ],
)
def test_vocabulary_settings_are_checked(values: dict, message: str):
    with pytest.raises(InputError, match=message):
        VocabConfig.from_dict({**VOCAB, **values})


def test_a_missing_setting_is_named():
    with pytest.raises(InputError, match=r"`VocabConfig` needs the key 'output'\. Received: \['inputs'\]"):
        VocabConfig.from_dict({"inputs": ["a.txt"]})


@pytest.mark.parametrize("config", [PretrainConfig, EvaluateConfig])
@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"masking": "words"}, r"`masking` must be token, whole-word or n-gram\. Received: masking='words'"),
        ({"max_ngram": 0}, r"`max_ngram` must be a number of at least 1\b.*\. Received: max_ngram=0"),
        ({"max_ngram": 11}, r"`max_ngram` must be .* at most 10\. Received: max_ngram=11"),
    ],
)
def test_masking_settings_are_checked(config: type, values: dict, message: str):
    with pytest.raises(InputError, match=message):
        config(data="data", **{"run" if config is PretrainConfig else "model": "place"}, **values)


@pytest.mark.parametrize(
    ("phases", "message"),
    [
        ([{"share": 1}], r"`phases` needs the key 'length'\. Received: \['share'\]"),
        ([{"length": 64}], r"`phases` must have either share or steps\. Received: share=None, steps=None"),
        ([{"length": 64, "share": 1, "steps": 9}], r"`phases` must have either share or steps\. .*share=1, steps=9"),
        ([{"length": 64, "share": 0.5}], r"`phases` must have shares that add up to 1\. Received: shares=\[0.5\]"),
        (
            [{"length": 64, "share": 0.5}, {"length": 64, "steps": 9}],
            r"`phases` must all have steps, or all have share\. Received: steps=\[None, 9\]",
        ),
        ([], r"`phases` must be one or more\. Received: phases=\(\)"),
        (
            [{"length": 64, "share": 1, "size": 2}],
            r"Unknown `phases` keys: \['size'\]\. Known keys: \['length', 'share'",
        ),
        (
            [{"length": "64", "share": 1}],
            r"`phases` must have a whole number from 1 on as length\. Received: length='64'",
        ),
        ([{"length": 64, "share": "1"}], r"`phases` must have a positive number as share\. Received: share='1'"),
        ([{"length": 64, "share": 1, "batch_size": 0}], r"`phases` must have .* as batch_size\. .*batch_size=0"),
        ([{"length": 64, "steps": 1.5}], r"`phases` must have a whole number from 1 on as steps\. .*steps=1.5"),
        ([{"length": 64, "share": 1, "warmup_steps": -1}], r"`phases` must have .* from 0 on as warmup_steps\. .*=-1"),
        ([{"length": 64, "share": 1, "learning_rate": 0}], r"`phases` must have a positive .* as learning_rate\. .*=0"),
        ({"length": 64, "share": 1}, r"`phases` must be a list of \{length, share, steps, .*\}\. Received: 'length'"),
        ([{"length": 64, "share": 1, "packed": 2}], r"`phases` must have true or false as packed\. Received: packed=2"),
        ([{"length": 64, "share": 1, "bucketed": 2}], r"`phases` must have true or false as bucketed\. .*bucketed=2"),
        (
            [{"length": 64, "share": 1, "packed": True, "bucketed": True}],
            r"`phases` must not be both packed and bucketed\. Received: packed=True, bucketed=True",
        ),
    ],
)
def test_a_mistake_in_a_phase_names_the_argument(phases, message: str):
    with pytest.raises(InputError, match=message):
        PretrainConfig.from_dict({"data": "data", "run": "run", "phases": phases})


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"optimizer": "sgd"}, r"`optimizer` must be adamw or lamb\. Received: optimizer='sgd'"),
        ({"trust_ratio": "all"}, r"`trust_ratio` must go with `optimizer` lamb\. .*'all', optimizer='adamw'"),
        ({"optimizer": "lamb", "trust_ratio": "no"}, r"`trust_ratio` must be decayed or all\. .*trust_ratio='no'"),
        ({"layer_decay": 0}, r"`layer_decay` must be a number more than 0 and at most 1\. Received: layer_decay=0"),
        ({"epsilon": 0}, r"`epsilon` must be a number more than 0 and at most 1\. Received: epsilon=0"),
        ({"not_decayed": ["gamma"]}, r"`not_decayed` must be of bias, layer_norm, embedding\. Received: 'gamma'"),
        ({"schedule": "step"}, r"`schedule` must be linear, polynomial, cosine or constant\. .*schedule='step'"),
        ({"schedule_span": "epoch"}, r"`schedule_span` must be run or phase\. Received: schedule_span='epoch'"),
        ({"decay_from": "end"}, r"`decay_from` must be start or warmup\. Received: decay_from='end'"),
        ({"schedule_power": 2}, r"`schedule_power` must go with `schedule` polynomial\. .*=2, schedule='linear'"),
        ({"end_learning_rate": 1e-3}, r"`end_learning_rate` must be .* at most 0.0001\. .*end_learning_rate=0.001"),
        (
            {"phases": [{"length": 64, "share": 1, "learning_rate": 0.1}]},
            r"`phases` may have their own learning_rate only with `schedule_span` phase\. .*=0.1, schedule_span='run'",
        ),
        (
            {"steps": 9, "phases": [{"length": 64, "steps": 8}]},
            r"`steps` must be the sum of those of the phases, \[8\]: give .*`--steps null`, .* Received: steps=9",
        ),
        (
            {"batch_size": 8, "phases": [{"length": 64, "share": 1, "batch_size": 4}]},
            r"`batch_size` would have no effect, since every phase has its own: give `phases` .*=8, phases with \[4\]",
        ),
        (
            {"learning_rate": 1, "schedule_span": "phase", "phases": [{"length": 64, "share": 1, "learning_rate": 2}]},
            r"`learning_rate` would have no effect, since .* Received: learning_rate=1, phases with \[2\]",
        ),
        (
            {"steps_per_execution": 100_001},
            r"`steps_per_execution` must be .* at least 1 and at most 100000\. .*=100001",
        ),
        ({"steps_per_execution": 2**31}, r"`steps_per_execution` must be .* at most 100000\. "),
        ({"batch_size": 2**24 + 1}, r"`batch_size` must be .* at most 16777216\. Received: batch_size=16777217"),
        ({"micro_batches": 2**24 + 1}, r"`micro_batches` must be .* at most 16777216\. "),
        ({"log_every": 2**31}, r"`log_every` must be .* at most 2000000000\. Received: log_every=2147483648"),
        ({"steps": 2**31}, r"`steps` must be .* at most 2000000000\. "),
        ({"warmup_steps": 2**31}, r"`warmup_steps` must be .* at most 2000000000\. "),
        ({"keep_checkpoints": 1_000_001}, r"`keep_checkpoints` must be .* at most 1000000\. "),
        ({"replicas": 1025}, r"`replicas` must be .* at most 1024\. Received: replicas=1025"),
        ({"phases": [{"length": 8, "steps": 2**31}]}, r"`phases` must have at most 2000000000 as steps\. "),
        ({"phases": [{"length": 8, "steps": 2 * 10**9}] * 2}, r"`phases` must have at most 2000000000 steps in all\. "),
        (
            {"phases": [{"length": 8, "share": 1, "batch_size": 2**25}]},
            r"`phases` must have at most 16777216 as batch_size\. Received: batch_size=33554432",
        ),
        ({"run": ""}, r"`run` must be the name of a directory, as UTF-8 text\. Received: run=''"),
        ({"data": "a\udcff"}, r"`data` must be the name of a directory, as UTF-8 text\. Received: data='a"),
    ],
)
def test_settings_of_optimizer_and_schedule_are_checked(values: dict, message: str):
    with pytest.raises(InputError, match=message):
        PretrainConfig.from_dict({"data": "data", "run": "run", **values})


@pytest.mark.parametrize("batch_size", [256, 4, 2])
def test_a_batch_size_that_a_phase_has_or_the_default_goes_with_phases_of_their_own(batch_size: int):
    phases = [{"length": 64, "share": 0.5, "batch_size": 4}, {"length": 64, "share": 0.5, "batch_size": 2}]
    values = {"data": "data", "run": "run", "batch_size": batch_size, "phases": phases}
    assert PretrainConfig.from_dict(values).batch_size == batch_size


def test_steps_are_given_or_those_of_the_phases_or_a_million():
    phases = [{"length": 64, "steps": 8}, {"length": 128, "steps": 3}]
    for values, steps in (({}, 1_000_000), ({"steps": 7}, 7), ({"phases": phases}, 11)):
        assert PretrainConfig.from_dict({"data": "data", "run": "run", **values}).total_steps == steps


@pytest.mark.parametrize("seed", [-1, 2**64, 2**65, 1.0, True, "1", None])
def test_seeds_that_would_be_taken_for_another_are_refused(seed):
    message = rf"`seed` must be a whole number from 0 to 18446744073709551615\. Received: seed={seed!r}$"
    for config, given in (
        (PrepareConfig, PREPARE),
        (PretrainConfig, {"data": "data", "run": "run"}),
        (EvaluateConfig, {"data": "data", "model": "model"}),
    ):
        with pytest.raises(InputError, match=message):
            config.from_dict({**given, "seed": seed})
        assert config.from_dict({**given, "seed": 2**64 - 1}).seed == 2**64 - 1


# What must be given, and what must go with some of the settings.
GIVEN = [
    (VocabConfig, VOCAB),
    (VocabConfig, {**VOCAB, "extend": "vocab.txt", "add": 8}),
    (PrepareConfig, PREPARE),
    (PrepareConfig, {**PREPARE, "format": "tfrecord", "masking": "n-gram"}),
    (PretrainConfig, {"data": "data", "run": "run"}),
    (PretrainConfig, {"data": "data", "run": "run", "cluster": "a:1,b:1", "worker": 0}),
    (EvaluateConfig, {"model": "model", "data": "data"}),
    (FinetuneConfig, {"task": "qa", "model": "model", "train": ["a.json"], "output": "output"}),
    (PredictConfig, {"model": "model", "input": "a.txt"}),
]


@pytest.mark.parametrize(("settings", "given"), GIVEN)
def test_half_a_number_is_refused_wherever_a_whole_one_is_meant(settings, given):
    settings(**given)
    hints = {name: typing.get_args(hint) or (hint,) for name, hint in typing.get_type_hints(settings).items()}
    whole = [name for name, kinds in hints.items() if int in kinds and float not in kinds]
    assert whole
    for name in whole:
        with pytest.raises(InputError, match=rf"`{name}` (must .*whole number|.*must go |must be left)"):
            settings(**{**given, name: 12.5})
