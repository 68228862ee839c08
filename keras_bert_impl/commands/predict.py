"""`keras-bert predict`."""

from jsonargparse import Namespace

from keras_bert_impl.command_parser import options_of, settings_from
from keras_bert_impl.commands.say import say_beside
from keras_bert_impl.quiet import import_tensorflow
from keras_bert_impl.training.configs import PredictConfig

add_options = options_of(PredictConfig, ["model"])


def run(options: Namespace) -> None:
    """Runs the command."""
    config = settings_from(PredictConfig, options)
    from keras_bert_impl.training.finetuning.predict import checked, predict

    checked(config)  # says what is wrong before TensorFlow's start
    import_tensorflow(options.verbose)
    predict(config, say=say_beside)
