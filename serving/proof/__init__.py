"""The proof that an export answers as its Keras model does."""
