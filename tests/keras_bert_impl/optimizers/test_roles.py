"""Which variables are decayed, and how fast each layer learns: told on the paths of real models."""

import keras
import pytest
from harness import small_config
from numpy_updates import variables

from keras_bert_impl.models import BertClassifier, BertPretrainer
from keras_bert_impl.optimizers import BertAdamW, is_decayed
from keras_bert_impl.optimizers.roles import layer_factors, role


@pytest.fixture(scope="module")
def pretrainer():
    return BertPretrainer(small_config())


def test_biases_and_layer_norm_of_a_real_model_are_not_decayed(pretrainer):
    decayed = {variable.path for variable in pretrainer.trainable_variables if is_decayed(variable)}
    assert {path for path in decayed if path.split("/")[-1] not in ("kernel", "table")} == set()
    assert len(decayed) == 3 + 2 * 6 + 3
    assert "embeddings/token_embedding/table" in decayed
    for path in ("mlm_head/bias", "embeddings/layer_norm/gamma", "block_1/attention/key/bias"):
        assert path in {variable.path for variable in pretrainer.trainable_variables} - decayed


def test_every_variable_of_a_real_model_has_its_role(pretrainer):
    roles = {variable.path: role(variable) for variable in pretrainer.trainable_variables}
    assert {path for path in roles if roles[path] == "embedding"} == {
        f"embeddings/{name}_embedding/table" for name in ("token", "segment", "position")
    }
    assert all(("layer_norm" in path or "norm" in path) == (kind == "layer_norm") for path, kind in roles.items())
    assert {path.split("/")[-1] for path in roles if roles[path] == "kernel"} == {"kernel"}


def test_roles_can_be_chosen():
    decayed = [is_decayed(variable, ("embedding", "bias")) for variable in variables()]
    assert decayed == [False, True, True, False, True, True]


def test_lower_layers_learn_slower_and_pooler_and_heads_at_the_whole_rate(pretrainer):
    factors = dict(
        zip(
            [variable.path for variable in pretrainer.trainable_variables],
            layer_factors(pretrainer.trainable_variables, 0.9),
            strict=True,
        )
    )
    for path, factor in factors.items():
        first = path.split("/")[0]
        expected = {"embeddings": 0.9**3, "block_0": 0.9**2, "block_1": 0.9, "pooler": 1, "mlm_head": 1, "nsp_head": 1}
        assert factor == pytest.approx(expected[first]), path


def test_a_classifier_s_head_learns_at_the_whole_rate():
    model = BertClassifier(small_config(), labels=["no", "yes"])
    factors = layer_factors(model.trainable_variables, 0.5)
    assert (min(factors), max(factors)) == (0.5**3, 1.0)
    assert factors[-1] == 1


def test_layer_decay_without_layers_is_refused():
    kernel = keras.Variable([1.0], name="kernel")
    with pytest.raises(
        ValueError, match=r"`layer_decay` must be 1 for variables that are not of .*layer_decay=0.9, 'kernel'"
    ):
        BertAdamW(0.1, layer_decay=0.9).build([kernel])
