"""`keras-bert evaluate`, on prepared or on labelled data."""

from jsonargparse import Namespace

from keras_bert_impl.command_parser import options_of, settings_from
from keras_bert_impl.commands.say import say
from keras_bert_impl.quiet import import_tensorflow
from keras_bert_impl.training.configs import EvaluateConfig

add_options = options_of(EvaluateConfig, ["model"])


def run(options: Namespace) -> None:
    """Runs the command."""
    config = settings_from(EvaluateConfig, options)
    if config.input:
        from keras_bert_impl.training.finetuning.askers import task_of

        task_of(config.model)  # says what is wrong before TensorFlow's start
    import_tensorflow(options.verbose)
    from keras_bert_impl.training.evaluate import evaluate

    evaluate(config, say=say)
