"""Text to token ids: one WordPiece specification, in Python and inside a TensorFlow graph."""
