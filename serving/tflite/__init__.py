"""Models as TFLite files: written, quantised, measured, and asked without TensorFlow."""
