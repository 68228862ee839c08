"""Whole models, built from the layers."""

from keras_bert_impl.models.bert_encoder import BertEncoder
from keras_bert_impl.models.bert_pretrainer import BertPretrainer

__all__ = ["BertEncoder", "BertPretrainer"]
