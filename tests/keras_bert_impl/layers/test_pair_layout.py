"""`PairLayout`: positions that restart and a block-diagonal mask."""

import keras
import numpy as np
from harness import arrays

from keras_bert_impl.layers import PairLayout

PAIR_IDS = np.array([[1, 1, 1, 2, 2, 0], [1, 2, 2, 2, 3, 3], [0, 0, 0, 0, 0, 0]], "int32")
CLS_POSITIONS = np.array([[0, 3, 0], [0, 1, 4], [0, 0, 0]], "int32")


def test_positions_restart_with_every_pair_and_are_0_at_padding():
    position_ids, _ = PairLayout()(PAIR_IDS, CLS_POSITIONS)
    assert keras.backend.standardize_dtype(position_ids.dtype) == "int32"
    assert arrays(position_ids).tolist() == [[0, 1, 2, 0, 1, 0], [0, 0, 1, 2, 0, 1], [0] * 6]


def test_positions_see_one_another_inside_a_pair_only():
    _, attention_mask = PairLayout()(PAIR_IDS, CLS_POSITIONS)
    assert keras.backend.standardize_dtype(attention_mask.dtype) == "bool"
    for row, pair_ids in zip(arrays(attention_mask), PAIR_IDS, strict=True):
        for seen, pair_id in zip(row, pair_ids, strict=True):
            np.testing.assert_array_equal(seen, pair_ids == pair_id)


def test_a_symbolic_call_knows_its_shapes_and_computes_the_same(tmp_path):
    inputs = [keras.Input((None,), dtype="int32") for _ in range(2)]
    outputs = PairLayout()(*inputs)
    assert [(tensor.shape, tensor.dtype) for tensor in outputs] == [((None, None), "int32"), ((None,) * 3, "bool")]
    model = keras.Model(inputs, outputs)
    model.save(tmp_path / "model.keras")
    for one in (model, keras.models.load_model(tmp_path / "model.keras")):
        for found, expected in zip(one([PAIR_IDS, CLS_POSITIONS]), PairLayout()(PAIR_IDS, CLS_POSITIONS), strict=True):
            np.testing.assert_array_equal(arrays(found), arrays(expected))
    assert not PairLayout().weights
