"""What every layer and every model must do, checked in one place."""

import itertools
import json

import keras
import numpy as np

from keras_bert_impl.config import BertConfig


def small_config(**overrides):
    """A BERT that builds in a moment; no two sizes are equal, so that mixed-up axes show."""
    fields = {
        "vocab_size": 37,
        "hidden_size": 12,
        "num_hidden_layers": 2,
        "num_attention_heads": 3,
        "intermediate_size": 20,
        "max_position_embeddings": 16,
    }
    return BertConfig(**{**fields, **overrides})


def small_batch(seed=0, batch=3, seq_len=9, predictions=2, vocab_size=37):
    """Two texts a row, the rows padded from their 5th, 6th, ... position on."""
    rng = np.random.default_rng(seed)
    lengths = np.minimum(5 + np.arange(batch), seq_len)[:, None]
    positions = np.arange(seq_len)[None]
    padding_mask = (positions < lengths).astype("int32")
    return {
        "token_ids": rng.integers(1, vocab_size, (batch, seq_len)).astype("int32") * padding_mask,
        "segment_ids": (positions >= 3).astype("int32") * padding_mask,
        "padding_mask": padding_mask,
        "mask_positions": rng.integers(0, 5, (batch, predictions)).astype("int32"),
    }


def arrays(outputs):
    """Float32 arrays of a tensor, a variable or a dict of them."""
    return keras.tree.map_structure(
        lambda tensor: keras.ops.convert_to_numpy(keras.ops.cast(keras.ops.convert_to_tensor(tensor), "float32")),
        outputs,
    )


def check_layer(make, inputs, output_shape, num_weights, output_dtype=None):
    """Checks a layer against the contract.

    Args:
        make: makes the layer; takes `seed=` where the layer has one, `dtype=`, `name=`.
        inputs: the arrays of one call, by argument.
        output_shape: of that call.
        num_weights: variables of the built layer, shared ones included.
        output_dtype: of the output; the compute dtype when not given.
    """
    layer = make()
    outputs = layer(**inputs)
    assert tuple(outputs.shape) == output_shape
    assert len(layer.weights) == num_weights
    _check_config(make)
    _check_symbolic_call(make, inputs, output_shape, output_dtype)
    _check_training_step(make, inputs)
    _check_initial_values(layer, make, inputs)
    for policy, dtype in (("mixed_bfloat16", "bfloat16"), ("mixed_float16", "float16")):
        low = make(dtype=policy)
        low_outputs = low(**inputs)
        assert keras.backend.standardize_dtype(low_outputs.dtype) == (output_dtype or dtype)
        assert np.isfinite(arrays(low_outputs)).all()
        assert {weight.dtype for weight in low.weights} == {"float32"}
        for sublayer in low._flatten_layers():
            assert sublayer.compute_dtype == dtype, sublayer.path
    return arrays(outputs)


def _check_config(make):
    layer = make()
    config = json.loads(json.dumps(layer.get_config()))
    assert type(layer).from_config(dict(config)).get_config() == layer.get_config()


def _symbolic(inputs):
    """Symbolic inputs of the same ranks; only the width of vectors is known."""
    return {
        name: keras.Input(
            batch_shape=[
                size if array.dtype.kind == "f" and axis == array.ndim - 1 else None
                for axis, size in enumerate(array.shape)
            ],
            dtype=array.dtype.name,
            name=name,
        )
        for name, array in inputs.items()
    }


def _check_symbolic_call(make, inputs, output_shape, output_dtype):
    layer = make()
    config = layer.get_config()
    symbolic = _symbolic(inputs)
    spec = layer(**symbolic)
    assert len(spec.shape) == len(output_shape)
    assert all(known in (None, size) for known, size in zip(spec.shape, output_shape, strict=True))
    assert spec.shape[-1] == output_shape[-1]
    assert spec.dtype == (output_dtype or "float32")
    assert layer.get_config() == config, "building changed the config"
    np.testing.assert_allclose(
        arrays(keras.Model(symbolic, spec)(inputs)), arrays(layer(**inputs)), rtol=1e-5, atol=1e-6
    )


def _check_training_step(make, inputs):
    symbolic = _symbolic(inputs)
    model = keras.Model(symbolic, make()(**symbolic))
    model.compile(optimizer=keras.optimizers.SGD(1.0), loss="mse", run_eagerly=True)
    before = [arrays(weight) for weight in model.trainable_weights]
    target = np.random.default_rng(1).normal(size=model(inputs).shape)
    assert np.isfinite(model.train_on_batch(inputs, target))
    for weight, old in zip(model.trainable_weights, before, strict=True):
        # Keys have no gradient through their bias: it moves every score of a row alike.
        assert weight.path.endswith("key/bias") or not np.array_equal(arrays(weight), old), weight.path


def _check_initial_values(layer, make, inputs):
    for one, other in itertools.combinations(layer.trainable_weights, 2):
        if one.shape == other.shape and np.std(arrays(one)) > 0:
            assert not np.array_equal(arrays(one), arrays(other)), f"{one.path} equals {other.path}"
    again = make(name="another_name")
    again(**inputs)
    for one, other in zip(layer.weights, again.weights, strict=True):
        np.testing.assert_array_equal(arrays(one), arrays(other))


def check_model(make, inputs, output_shapes, tmp_path):
    """Checks a model against the contract.

    Args:
        make: makes the model; takes `dtype=`, `seed=`, `name=`.
        inputs: dict of arrays.
        output_shapes: dict of shapes; or one shape, of a model with one output.
        tmp_path: an empty directory.
    """
    model = make()
    output_shapes = _by_name(output_shapes)
    assert {name: tuple(output.shape) for name, output in _by_name(model(inputs)).items()} == output_shapes
    assert set(_by_name(model.predict(inputs, verbose=0))) == set(output_shapes)

    config = json.loads(json.dumps(model.get_config()))
    assert type(model).from_config(config).get_config() == model.get_config()
    for one, other in zip(model.weights, make(name="another_name").weights, strict=True):
        assert one.path == other.path
        np.testing.assert_array_equal(arrays(one), arrays(other), err_msg=one.path)
    differing = [
        not np.array_equal(arrays(a), arrays(b))
        for a, b in zip(model.weights, make(seed=1).weights, strict=True)
        if np.std(arrays(a)) > 0
    ]
    assert all(differing)
    for one, other in itertools.combinations(model.weights, 2):
        if one.shape == other.shape and np.std(arrays(one)) > 0:
            assert not np.array_equal(arrays(one), arrays(other)), f"{one.path} equals {other.path}"

    for policy, compute in (
        ("float32", "float32"),
        ("mixed_bfloat16", "bfloat16"),
        ("mixed_float16", "float16"),
        ("bfloat16", "bfloat16"),
    ):
        _check_policy(make(dtype=policy), policy, compute, inputs, tmp_path)


def _by_name(outputs):
    return outputs if isinstance(outputs, dict) else {"output": outputs}


def _check_policy(model, policy, compute, inputs, tmp_path):
    which_are_tokens = "pair_ids" if "pair_ids" in inputs else "padding_mask"
    all_padding = {**inputs, which_are_tokens: inputs[which_are_tokens] * 0}
    for batch in (inputs, all_padding):
        for name, output in _by_name(arrays(model(batch, training=True))).items():
            assert np.isfinite(output).all(), (policy, name)
    for layer in model._flatten_layers():
        if not isinstance(layer, keras.layers.InputLayer) and layer.weights:
            assert layer.compute_dtype == compute, layer.path

    file = tmp_path / f"{policy}.keras"
    model.save(file)
    restored = keras.models.load_model(file)
    assert type(restored) is type(model)
    assert restored.get_config() == model.get_config()
    assert restored.dtype_policy.name == policy
    assert [w.dtype for w in restored.weights] == [w.dtype for w in model.weights]
    keras.tree.map_structure(np.testing.assert_array_equal, arrays(restored(inputs)), arrays(model(inputs)))
