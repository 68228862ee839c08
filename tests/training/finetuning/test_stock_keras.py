"""The models of tasks are trained by Keras' own `compile` and `fit`, too."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from finetuning_runs import toy_texts, write_toy_files
from task_models import toy_tokenizer

from keras_bert_impl.models import BertClassifier
from keras_bert_impl.tasks.rows import batch_inputs, text_row

pytestmark = pytest.mark.slow


def test_a_classifier_learns_with_stock_keras(tmp_path):
    tokenizer, texts = toy_tokenizer(), toy_texts(240)
    model = BertClassifier.from_pretrained(write_toy_files(tmp_path) / "model", labels=["bad", "good"], seed=1)
    inputs = batch_inputs([text_row(tokenizer, 16, text) for _, text in texts], tokenizer.pad_token_id)
    labels = np.array([label == "good" for label, _ in texts], "int32")
    data = tf.data.Dataset.from_tensor_slices((inputs, labels))
    model.compile(
        keras.optimizers.Adam(1e-2),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    model.fit(data.take(200).batch(16), epochs=8, verbose=0)
    assert model.evaluate(data.skip(200).batch(16), verbose=0, return_dict=True)["accuracy"] > 0.9
