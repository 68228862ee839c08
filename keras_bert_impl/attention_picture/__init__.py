"""What each token of a text looks at, as one picture."""

from keras_bert_impl.attention_picture.picture import write_attention_picture

__all__ = ["write_attention_picture"]
