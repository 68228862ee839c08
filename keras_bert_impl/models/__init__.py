"""Whole models, built from the layers."""

from keras_bert_impl.models.bert_classifier import BertClassifier
from keras_bert_impl.models.bert_encoder import BertEncoder
from keras_bert_impl.models.bert_masked_lm import BertMaskedLM
from keras_bert_impl.models.bert_pretrainer import BertPretrainer
from keras_bert_impl.models.bert_question_answerer import BertQuestionAnswerer
from keras_bert_impl.models.bert_token_classifier import BertTokenClassifier

__all__ = [
    "BertClassifier",
    "BertEncoder",
    "BertMaskedLM",
    "BertPretrainer",
    "BertQuestionAnswerer",
    "BertTokenClassifier",
]
