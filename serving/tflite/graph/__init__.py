"""Models as TFLite graphs, written operator by operator from their layers and weights."""
