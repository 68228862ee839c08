"""TensorFlow Serving's REST interface, version 1."""
