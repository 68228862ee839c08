"""Agreement with Hugging Face's BERT on PyTorch, and model directories that it opens."""

import numpy as np
import pytest
from harness import arrays, small_config
from reference_models import (
    ENCODER_INPUTS,
    PADDINGS,
    SHAPES,
    HuggingFaceBert,
    Ours,
    check_gradients,
    check_hidden_states,
    check_logits,
    draw_weights,
    padded_batch,
    pretrainer,
)

from keras_bert_impl.models import (
    BertClassifier,
    BertEncoder,
    BertMaskedLM,
    BertPretrainer,
    BertQuestionAnswerer,
    BertTokenClassifier,
)

torch = pytest.importorskip("torch", reason="needs PyTorch: pip install torch transformers")
transformers = pytest.importorskip("transformers", reason="needs Hugging Face transformers: pip install transformers")

pytestmark = pytest.mark.torch

GELUS = ["gelu", "gelu_new", "gelu_pytorch_tanh"]


@pytest.fixture(scope="module", params=[(shape, gelu) for shape in SHAPES for gelu in GELUS[:2]], ids="-".join)
def pair(request):
    """A model of ours and theirs with its weights, with the name of their shape."""
    shape, hidden_act = request.param
    model = pretrainer(shape, hidden_act)
    return shape, Ours(model), HuggingFaceBert(model)


@pytest.mark.parametrize("padding", PADDINGS)
def test_hidden_states_pooled_outputs_and_logits_agree(pair, padding):
    shape, ours, theirs = pair
    check_hidden_states(ours, theirs, padded_batch(shape, padding))
    check_logits(ours, theirs, padded_batch(shape, padding))


@pytest.mark.parametrize("padding", PADDINGS)
def test_every_gradient_of_the_pretraining_loss_agrees(pair, padding):
    shape, ours, theirs = pair
    batch = padded_batch(shape, padding)
    check_gradients(ours.gradients(batch), theirs.gradients(batch))


def opened(their_class, folder):
    """Their model from a directory; nothing in it is missing, unexpected or of another shape."""
    model, report = their_class.from_pretrained(folder, output_loading_info=True)
    assert {name: found for name, found in report.items() if found} == {}
    return model.eval()


def encoded(encoder, batch):
    return arrays(encoder({name: batch[name] for name in ENCODER_INPUTS}))


def called(model, batch):
    with torch.no_grad():
        return model(
            input_ids=torch.from_numpy(batch["token_ids"]).long(),
            token_type_ids=torch.from_numpy(batch["segment_ids"]).long(),
            attention_mask=torch.from_numpy(batch["padding_mask"]).long(),
        )


def gathered(logits, batch):
    """Those at the positions to predict, of logits of every position."""
    return np.take_along_axis(logits.numpy(), batch["mask_positions"][..., None], axis=1)


@pytest.mark.parametrize("hidden_act", GELUS)
def test_a_saved_encoder_opens_there_with_the_same_outputs(hidden_act, tmp_path):
    encoder = draw_weights(BertEncoder(small_config(hidden_act=hidden_act)))
    encoder.save_pretrained(tmp_path / "model")
    theirs = opened(transformers.AutoModel, tmp_path / "model")
    assert type(theirs) is transformers.BertModel
    batch = padded_batch("three_heads_of_4", "mixed")
    outputs = encoded(encoder, batch)
    expected = called(theirs, batch)
    np.testing.assert_allclose(outputs["sequence_output"], expected.last_hidden_state, rtol=0, atol=2e-5)
    np.testing.assert_allclose(outputs["pooled_output"], expected.pooler_output, rtol=0, atol=2e-5)


@pytest.mark.parametrize("hidden_act", GELUS)
@pytest.mark.parametrize("their_class", ["BertForPreTraining", "AutoModelForPreTraining"])
def test_a_saved_pretrainer_opens_there_with_the_same_logits(hidden_act, their_class, tmp_path):
    model = pretrainer("three_heads_of_4", hidden_act)
    model.save_pretrained(tmp_path / "model")
    theirs = opened(getattr(transformers, their_class), tmp_path / "model")
    assert type(theirs) is transformers.BertForPreTraining
    batch = padded_batch("three_heads_of_4", "mixed")
    mlm_logits, nsp_logits = Ours(model).logits(batch)
    expected = called(theirs, batch)
    at_positions = gathered(expected.prediction_logits, batch)
    np.testing.assert_allclose(mlm_logits, at_positions, rtol=0, atol=1e-4)
    np.testing.assert_allclose(nsp_logits, expected.seq_relationship_logits, rtol=0, atol=1e-4)


def check_task_model(model, their_class, batch, names, tmp_path):
    """Saves, opens there, compares outputs; `names` has their name of each of ours. Returns theirs."""
    draw_weights(model).save_pretrained(tmp_path / "model")
    theirs = opened(their_class, tmp_path / "model")
    outputs = arrays(model({tensor.name: batch[tensor.name] for tensor in model.inputs}))
    outputs = outputs if isinstance(outputs, dict) else {"logits": outputs}
    expected = called(theirs, batch)
    assert outputs.keys() == names.keys()
    for name, values in outputs.items():
        logits = getattr(expected, names[name])
        logits = gathered(logits, batch) if name == "mlm_logits" else logits
        np.testing.assert_allclose(values, logits, rtol=0, atol=1e-4, err_msg=name)
    return theirs


def test_a_saved_masked_lm_opens_there_with_the_same_logits(tmp_path):
    model, batch = BertMaskedLM(small_config()), padded_batch("three_heads_of_4", "mixed")
    check_task_model(model, transformers.AutoModelForMaskedLM, batch, {"mlm_logits": "logits"}, tmp_path)


def test_a_saved_question_answerer_opens_there_with_the_same_logits(tmp_path):
    model, batch = BertQuestionAnswerer(small_config()), padded_batch("three_heads_of_4", "mixed")
    names = {"start_logits": "start_logits", "end_logits": "end_logits"}
    check_task_model(model, transformers.AutoModelForQuestionAnswering, batch, names, tmp_path)


@pytest.mark.parametrize(
    "our_class,their_class",
    [
        (BertClassifier, "AutoModelForSequenceClassification"),
        (BertTokenClassifier, "AutoModelForTokenClassification"),
    ],
)
def test_a_saved_classifier_opens_there_with_the_same_logits_and_labels(our_class, their_class, tmp_path):
    labels = ("no", "perhaps", "yes", "never")
    model, batch = our_class(small_config(), labels=labels), padded_batch("three_heads_of_4", "mixed")
    theirs = check_task_model(model, getattr(transformers, their_class), batch, {"logits": "logits"}, tmp_path)
    assert theirs.config.id2label == dict(enumerate(labels))


@pytest.mark.parametrize("our_class,their_class", [(BertEncoder, "BertModel"), (BertPretrainer, "BertForPreTraining")])
def test_a_directory_that_they_saved_opens_here(our_class, their_class, tmp_path):
    theirs = getattr(transformers, their_class)(transformers.BertConfig(**small_config().to_dict())).eval()
    theirs.save_pretrained(tmp_path / "model")
    ours = our_class.from_pretrained(tmp_path / "model")
    assert ours.load_report.complete
    batch = padded_batch("three_heads_of_4", "mixed")
    outputs = arrays(
        getattr(ours, "encoder", ours)({k: batch[k] for k in ("token_ids", "segment_ids", "padding_mask")})
    )
    expected = called(getattr(theirs, "bert", theirs), batch)
    np.testing.assert_allclose(outputs["sequence_output"], expected.last_hidden_state, rtol=0, atol=2e-5)
    np.testing.assert_allclose(outputs["pooled_output"], expected.pooler_output, rtol=0, atol=2e-5)
