"""From labelled examples to a model that does a task: reading, training, measuring, predicting."""
