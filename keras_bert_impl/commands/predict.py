"""`keras-bert predict`."""

from typing import Any

from jsonargparse import Namespace

from keras_bert_impl.command_parser import options_of, settings_from
from keras_bert_impl.commands.say import say_beside
from keras_bert_impl.errors import InputError
from keras_bert_impl.quiet import import_tensorflow
from keras_bert_impl.training.configs import PredictConfig

add_options = options_of(PredictConfig, ["model"])


def run(options: Namespace) -> None:
    """Runs the command."""
    config = settings_from(PredictConfig, options)
    from keras_bert_impl.training.finetuning.predict import checked, predict

    if config.model.endswith(".tflite"):
        answers = _answers_of_file(config)
        predict(config, say=say_beside, answers=answers)
        return
    checked(config)  # says what is wrong before TensorFlow's start
    import_tensorflow(options.verbose)
    predict(config, say=say_beside)


def _answers_of_file(config: PredictConfig) -> Any:
    """Returns what answers of a TFLite file; opens no TensorFlow."""
    from keras_bert_impl.serving.tflite.runner import TFLiteModel

    model = TFLiteModel(config.model)
    kind = model.contents.kind
    if kind == "fill-mask" and config.task != "embed":
        raise InputError(
            f"`model` must have been exported for a task. Received: {config.model!r}, which fills masks; "
            "`keras-bert fill-mask` asks it, `--task embed` gives its sentence vectors"
        )
    as_vectors = kind == "embedding" or config.task == "embed"
    return model.answers(max_length=config.max_length, pooling=config.pooling if as_vectors else None)
