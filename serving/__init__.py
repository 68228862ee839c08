"""From trained weights to answers. Imported as `keras_bert_impl.serving`; its parts are opened when named."""
