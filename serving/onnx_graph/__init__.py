"""Models as ONNX graphs, written node by node from their layers and weights."""
