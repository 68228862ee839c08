"""The optimizers that BERT and its kin were trained with."""

from .bert_adamw import BertAdamW
from .bert_lamb import BertLamb
from .roles import is_decayed

__all__ = ["BertAdamW", "BertLamb", "is_decayed"]
