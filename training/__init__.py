"""From text to trained weights. Imported as `keras_bert_impl.training`; its parts are opened when named."""
