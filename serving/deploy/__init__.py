"""Files that put an export on a TensorFlow Serving, written from the export: see `deployment.write_deployment`."""
