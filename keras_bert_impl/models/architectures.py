"""Every model by the name of its architecture in `config.json`."""

from keras_bert_impl.errors import InputError
from keras_bert_impl.models.bert_classifier import BertClassifier
from keras_bert_impl.models.bert_encoder import BertEncoder
from keras_bert_impl.models.bert_masked_lm import BertMaskedLM
from keras_bert_impl.models.bert_pretrainer import BertPretrainer
from keras_bert_impl.models.bert_question_answerer import BertQuestionAnswerer
from keras_bert_impl.models.bert_token_classifier import BertTokenClassifier
from keras_bert_impl.models.pretrained_model import PretrainedModel

ARCHITECTURES: dict[str, type[PretrainedModel]] = {
    model.architecture: model
    for model in (
        BertEncoder,
        BertPretrainer,
        BertMaskedLM,
        BertClassifier,
        BertTokenClassifier,
        BertQuestionAnswerer,
    )
}


def model_class(architecture: str) -> type[PretrainedModel]:
    """Returns the class of an architecture; raises `InputError` if there is none."""
    if architecture not in ARCHITECTURES:
        raise InputError(
            f"`architecture` must be one of {', '.join(ARCHITECTURES)}. Received: architecture={architecture!r}"
        )
    return ARCHITECTURES[architecture]
