import pytest
from reference_runs import SETTINGS

from keras_bert_impl.errors import InputError
from keras_bert_impl.training.reference_settings import read_settings


def arguments(**values):
    return read_settings({**SETTINGS, **values}).arguments


def test_the_settings_of_a_run_become_arguments_of_the_optimizer():
    settings = read_settings(SETTINGS)
    assert (settings.optimizer, settings.next_sentence) == ("adamw", True)
    assert settings.arguments == {
        "beta_1": 0.9,
        "beta_2": 0.999,
        "epsilon": 1e-6,
        "weight_decay": 0.01,
        "bias_correction": True,
        "not_decayed": ("bias", "layer_norm"),
        "global_clipnorm": 1.0,
    }


@pytest.mark.parametrize(
    ("words", "kind", "corrects"),
    [
        ("AdamW with bias correction, decoupled decay 0.01*lr", "adamw", True),
        ("AdamW", "adamw", True),
        ("AdamW, no bias-correction", "adamw", False),
        ("the original's Adam without bias correction, decay inside the lr multiply", "adamw", False),
        ("the original's Adam", "adamw", False),
        ("BertAdam", "adamw", False),
        ("Adam with decoupled decay and bias correction", "adamw", True),
        ("LAMB (Adam with a trust ratio) with bias correction", "lamb", True),
        ("ALBERT's LAMB without bias correction", "lamb", False),
    ],
)
def test_the_optimizer_is_named_in_words(words: str, kind: str, corrects: bool):
    settings = read_settings({**SETTINGS, "optimizer": words})
    assert (settings.optimizer, settings.arguments["bias_correction"]) == (kind, corrects)


@pytest.mark.parametrize(
    ("words", "variables"),
    [
        ("LAMB with bias correction", "all"),
        ("LAMB with bias correction, trust ratio for decayed variables only", "decayed"),
        ("LAMB without bias correction, the trust ratio is not applied to biases and LayerNorm", "decayed"),
        ("LAMB without bias correction, trust ratio for all variables, LayerNorm too", "all"),
        ("ALBERT's LAMB without bias correction", "decayed"),
    ],
)
def test_lamb_says_which_variables_have_a_trust_ratio(words: str, variables: str):
    assert arguments(optimizer=words)["trust_ratio"] == variables


@pytest.mark.parametrize(
    ("words", "roles"),
    [
        ("biases and LayerNorm weights", ("bias", "layer_norm")),
        (["bias", "LayerNorm.weight"], ("bias", "layer_norm")),
        ("layer norm, biases and embeddings", ("bias", "layer_norm", "embedding")),
        ("biases", ("bias",)),
        ("none", ()),
        (None, ()),
    ],
)
def test_what_is_not_decayed_is_told_in_words(words, roles: tuple[str, ...]):
    assert arguments(no_decay=words)["not_decayed"] == roles


@pytest.mark.parametrize(
    ("words", "norm"),
    [("global norm 0.5 of the gradient", 0.5), ("none", None), (None, None), (2, 2.0), (0, None)],
)
def test_clipping_is_a_number_or_words(words, norm: float | None):
    assert arguments(clip=words)["global_clipnorm"] == norm


@pytest.mark.parametrize("words", ["sum(w*ce)/(sum(w)+1e-5)", "sum(w*ce)/sum(w)", "mean masked LM loss"])
def test_a_loss_that_does_not_name_the_next_sentence_has_no_part_for_it(words: str):
    assert not read_settings({**SETTINGS, "loss": words}).next_sentence


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"optimizer": "SGD"}, r"`optimizer` in run.json must name one of Adam, .* Received: optimizer='SGD'"),
        ({"optimizer": "RAdam"}, r"`optimizer` in run.json must name one of .*'RAdam'"),
        ({"optimizer": "AdamW, AMSGrad"}, r"`optimizer` in run.json must name one of .* without further additions"),
        ({"optimizer": "AdamW, layer-wise rates"}, r"`optimizer` in run.json must name one of"),
        ({"optimizer": "Adam"}, r"`optimizer` in run.json must decay weights apart from the gradient"),
        ({"optimizer": "LAMB"}, r"`optimizer` in run.json must say whether it is with or without bias correction"),
        ({"optimizer": None}, r"`optimizer` in run.json must be a text. Received: optimizer=None"),
        ({"betas": [0.9]}, r"`betas` in run.json must be two numbers. Received: betas=\[0.9\]"),
        ({"epsilon": "1e-6"}, r"`epsilon` in run.json must be a number. Received: epsilon='1e-6'"),
        ({"no_decay": "the pooler"}, r"`no_decay` in run.json must be of biases, .* Received: no_decay='the pooler'"),
        ({"no_decay": "LayerNorm weights"}, r"`no_decay` in run.json must be .* LayerNorm only together with biases"),
        ({"clip": "value 1.0"}, r"`clip` in run.json must be none, or the global norm .* Received: clip='value 1.0'"),
        ({"loss": "mlm + 0.5 * nsp"}, r"`loss` in run.json must be the weighted mean .* Received: loss='mlm \+ 0.5"),
    ],
)
def test_what_cannot_be_replayed_is_refused_by_name(values: dict, message: str):
    with pytest.raises(InputError, match=message):
        read_settings({**SETTINGS, **values})
