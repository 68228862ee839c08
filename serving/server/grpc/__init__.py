"""TensorFlow Serving's gRPC interface."""
