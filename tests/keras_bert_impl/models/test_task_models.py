"""The task models: contract, heads from checkpoints, labels."""

import json
import warnings

import numpy as np
import pytest
from harness import arrays, check_model, small_batch, small_config

from keras_bert_impl.models import (
    BertClassifier,
    BertEncoder,
    BertMaskedLM,
    BertPretrainer,
    BertQuestionAnswerer,
    BertTokenClassifier,
)

LABELS = ["no", "perhaps", "yes", "never"]


def batch(*names):
    wanted = ("token_ids", "segment_ids", "padding_mask", *names)
    return {name: array for name, array in small_batch().items() if name in wanted}


def make(cls):
    options = {"labels": LABELS} if cls in (BertClassifier, BertTokenClassifier) else {}
    return lambda **kwargs: cls(small_config(), **options, **kwargs)


@pytest.mark.parametrize(
    "cls,shapes",
    [
        (BertMaskedLM, {"mlm_logits": (3, 2, 37)}),
        (BertClassifier, (3, 4)),
        (BertTokenClassifier, (3, 9, 4)),
        (BertQuestionAnswerer, {"start_logits": (3, 9), "end_logits": (3, 9)}),
    ],
)
def test_contract(cls, shapes, tmp_path):
    check_model(make(cls), batch(*["mask_positions"] * (cls is BertMaskedLM)), shapes, tmp_path)


@pytest.mark.parametrize("cls", [BertMaskedLM, BertClassifier, BertTokenClassifier, BertQuestionAnswerer])
def test_a_model_directory_holds_the_whole_model(cls, tmp_path):
    model = make(cls)(seed=4)
    model.save_pretrained(tmp_path / "model")
    restored = cls.from_pretrained(tmp_path / "model")
    assert restored.load_report.complete
    assert restored.get_config() == {**model.get_config(), "seed": 0, "name": restored.name}
    for one, other in zip(restored.weights, model.weights, strict=True):
        assert "seed_generator_state" in one.path or np.array_equal(arrays(one), arrays(other)), one.path


@pytest.fixture
def pretrained(tmp_path):
    path = tmp_path / "pretrained"
    BertPretrainer(small_config(), seed=1).save_pretrained(path)
    return path


def test_labels_given_start_a_fresh_head_and_say_so(pretrained):
    with pytest.warns(UserWarning, match=r"model.safetensors: classifier starts with fresh weights"):
        model = BertClassifier.from_pretrained(pretrained, labels=["a", "b"], seed=5)
    assert model.load_report.fresh_parts == ("classifier",)
    np.testing.assert_array_equal(
        arrays(model.classifier.kernel),
        arrays(BertClassifier(small_config(), labels=["a", "b"], seed=5).classifier.kernel),
    )
    np.testing.assert_array_equal(
        arrays(model.encoder.pooler.dense.kernel),
        arrays(BertEncoder.from_pretrained(pretrained).pooler.dense.kernel),
    )


def test_a_classifier_without_labels_is_refused(pretrained):
    with pytest.raises(ValueError, match=r"`labels` must be given for a checkpoint without classifier. Received: '.*"):
        BertClassifier.from_pretrained(pretrained)


def test_a_question_answerer_from_a_pretrained_model_must_allow_its_fresh_head(pretrained):
    with pytest.raises(ValueError, match=r"lacks qa_outputs.weight, qa_outputs.bias \(qa_head\); `allow_missing="):
        BertQuestionAnswerer.from_pretrained(pretrained)
    with pytest.warns(UserWarning, match="qa_head starts with fresh weights"):
        BertQuestionAnswerer.from_pretrained(pretrained, allow_missing=("qa_head",))


def test_an_encoder_comes_out_of_every_task_model_without_a_warning(tmp_path):
    make(BertClassifier)().save_pretrained(tmp_path / "model")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        encoder = BertEncoder.from_pretrained(tmp_path / "model")
    assert encoder.load_report.unused == ("classifier.bias", "classifier.weight")


def test_labels_of_a_trained_head(tmp_path):
    make(BertClassifier)().save_pretrained(tmp_path / "model")
    assert BertClassifier.from_pretrained(tmp_path / "model").labels == tuple(LABELS)
    with pytest.raises(ValueError, match=r"must be those of the checkpoint's classifier, in its order. .*\['yes', "):
        BertClassifier.from_pretrained(tmp_path / "model", labels=["yes", "no", "never", "perhaps"])
    with pytest.raises(ValueError, match=r"classifier.\w+ is \(4,.* `labels`\); `fresh=\('classifier',\)` starts"):
        BertClassifier.from_pretrained(tmp_path / "model", labels=["yes", "no"])
    with pytest.warns(UserWarning, match="classifier starts with fresh weights"):
        model = BertClassifier.from_pretrained(tmp_path / "model", labels=["yes", "no"], fresh=("classifier",))
    assert np.std(arrays(model.classifier.kernel)) > 0 and not arrays(model.classifier.bias).any()


def test_a_head_for_new_labels_of_the_same_number_must_be_asked_for(tmp_path):
    make(BertClassifier)(seed=1).save_pretrained(tmp_path / "model")
    new = ["a", "b", "c", "d"]
    with pytest.raises(ValueError, match=r"`fresh=\('classifier',\)` starts a head for new ones"):
        BertClassifier.from_pretrained(tmp_path / "model", labels=new)
    with pytest.warns(UserWarning, match="classifier starts with fresh weights"):
        model = BertClassifier.from_pretrained(tmp_path / "model", labels=new, fresh=("classifier",), seed=3)
    assert model.labels == tuple(new)
    expected = BertClassifier(small_config(), labels=new, seed=3).classifier.kernel
    np.testing.assert_array_equal(arrays(model.classifier.kernel), arrays(expected))
    assert ("classifier.weight", "replaced by fresh values") in model.load_report.passed_over


def test_the_head_for_texts_is_none_for_tokens(tmp_path):
    make(BertClassifier)().save_pretrained(tmp_path / "model")
    with pytest.raises(ValueError, match="`labels` must be given for a checkpoint without classifier"):
        BertTokenClassifier.from_pretrained(tmp_path / "model")
    with pytest.warns(UserWarning, match="classifier starts with fresh weights"):
        model = BertTokenClassifier.from_pretrained(tmp_path / "model", labels=["O", "B"])
    assert ("classifier.bias", "the head of a BertForSequenceClassification") in model.load_report.passed_over


@pytest.mark.parametrize(
    "cls,options",
    [
        (BertEncoder, {"return_attentions": True}),
        (BertClassifier, {"return_attention": True, "labels": LABELS}),
        (BertPretrainer, {"labels": LABELS}),
    ],
)
def test_an_unknown_argument_is_refused(pretrained, cls, options):
    unknown = next(iter(options))
    with pytest.raises(ValueError, match=rf"`{cls.__name__}` has no argument '{unknown}'. Known: .*name"):
        cls.from_pretrained(pretrained, **options)
    with pytest.raises(ValueError, match=rf"`{cls.__name__}` has no argument '{unknown}'"):
        cls(small_config(), **options)


def test_a_subclass_with_variables_of_its_own_gets_them_drawn(pretrained):
    class WithAdapter(BertEncoder):
        def __init__(self, config, **kwargs):
            super().__init__(config, **kwargs)
            self.side = BertEncoder(config, seed=9)

    model = WithAdapter.from_pretrained(pretrained)
    table = BertEncoder(small_config(), seed=9).embeddings.token_embedding.table
    np.testing.assert_array_equal(arrays(model.side.embeddings.token_embedding.table), arrays(table))
    np.testing.assert_array_equal(
        arrays(model.embeddings.token_embedding.table),
        arrays(BertEncoder.from_pretrained(pretrained).embeddings.token_embedding.table),
    )


@pytest.mark.parametrize("argument", ["fresh", "allow_missing", "allow_inexact"])
def test_parts_are_given_as_a_list(pretrained, argument):
    with pytest.raises(ValueError, match=rf"`{argument}` must be a list of parts, .*Received: {argument}='pooler'"):
        BertEncoder.from_pretrained(pretrained, **{argument: "pooler"})


def test_a_quantized_model_is_not_written(tmp_path):
    model = make(BertMaskedLM)()
    model.mlm_head.dense.quantize("int8")
    with pytest.raises(ValueError, match=r"`model` must have floating-point weights. Received: .*kernel of int8"):
        model.save_pretrained(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_numbered_labels_may_be_named(tmp_path):
    make(BertClassifier)().save_pretrained(tmp_path / "model")
    config = json.loads((tmp_path / "model" / "config.json").read_text())
    del config["id2label"], config["label2id"]
    (tmp_path / "model" / "config.json").write_text(json.dumps(config))
    assert BertClassifier.from_pretrained(tmp_path / "model").labels == ("LABEL_0", "LABEL_1", "LABEL_2", "LABEL_3")
    assert BertClassifier.from_pretrained(tmp_path / "model", labels=LABELS).labels == tuple(LABELS)
    config["id2label"] = {"0": "a", "1": "b"}
    (tmp_path / "model" / "config.json").write_text(json.dumps(config))
    with pytest.raises(ValueError, match=r"one name in `id2label` for each output .* 4 outputs, id2label=\{'0'"):
        BertClassifier.from_pretrained(tmp_path / "model")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"label2id": {"a": 1, "b": 0}},
            r"the same numbers in `label2id` and `id2label`. Received: .* 'a' with 1 and 0",
        ),
        (
            {"id2label": {"0": "a", "1": "b\ud800", "2": "c", "3": "d"}},
            r"labels of whole characters .*, 'b\\ud800', with",
        ),
    ],
)
def test_labels_that_contradict_themselves_are_refused(changes, message, tmp_path):
    BertClassifier(small_config(), labels=list("abcd")).save_pretrained(tmp_path / "model")
    config = json.loads((tmp_path / "model" / "config.json").read_text())
    (tmp_path / "model" / "config.json").write_text(json.dumps(config | changes))
    with pytest.raises(ValueError, match=message):
        BertClassifier.from_pretrained(tmp_path / "model")


@pytest.mark.parametrize("labels", [[], "yes", ["a", "a"], ["a", ""], [1, 2], None])
def test_labels_that_are_no_different_names_are_refused(labels):
    with pytest.raises(ValueError, match=r"`labels` must be a list of one or more different names. Received: labels="):
        BertClassifier(small_config(), labels=labels)


def test_an_unknown_problem_type_is_refused():
    with pytest.raises(ValueError, match=r"`problem_type` must be one of single_.* Received: problem_type='ranking'"):
        BertClassifier(small_config(), labels=LABELS, problem_type="ranking")


@pytest.mark.parametrize("cls", [BertClassifier, BertTokenClassifier])
def test_a_dropout_that_is_no_share_is_refused(cls):
    with pytest.raises(ValueError, match=r"`classifier_dropout` must be at least 0 and less than 1. Received: .*=1.0"):
        cls(small_config(), labels=LABELS, classifier_dropout=1.0)


def test_presets_take_labels():
    model = BertTokenClassifier.from_preset("tiny", vocab_size=50, labels=["O", "B-X"])
    assert model.labels == ("O", "B-X")
    assert model.config.vocab_size == 50
