"""Texts to the ids of a row inside a TFLite graph, with tensorflow-text's operators."""
