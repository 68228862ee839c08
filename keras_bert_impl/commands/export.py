"""`keras-bert export`, in each format."""

import typing
from typing import Any

from jsonargparse import ArgumentParser, Namespace

from keras_bert_impl.commands.say import say
from keras_bert_impl.errors import InputError
from keras_bert_impl.quiet import import_tensorflow
from keras_bert_impl.serving.tflite.checked_arguments import FORMS, check_arguments, check_installed
from keras_bert_impl.training.configs.columns import COLUMN_SETTINGS, column_field

_OF_SERVING = ("tokenizer_ops", "attention", "deploy", "model_name")
_OF_TFLITE = ("quantize", "length", "text_in", "calibration", "labelled", "max_drop", "allow_drop")
_OF_TEXTS = tuple(name for name in COLUMN_SETTINGS if name != "id_column")


def add_options(parser: ArgumentParser) -> None:
    """Gives the parser this command's options."""
    parser.add_argument("model", type=str, metavar="MODEL", help="model directory or run directory")
    parser.add_argument(
        "target",
        type=str,
        metavar="TARGET_DIR",
        help="directory that gets a numbered version; for ONNX and TFLite, a new one",
    )
    formats = typing.Literal["savedmodel", "onnx", "tflite"]
    parser.add_argument("--format", type=formats, default="savedmodel", help="form of the export")
    parser.add_argument("--top", type=int, help="candidates per mask in the answer of a model that fills masks (5)")
    parser.add_argument(
        "--tokenizer-ops",
        type=typing.Literal["core", "text"],
        help="text: a faster tokenizer, for servers that have the operations of tensorflow-text which it needs (core)",
    )
    parser.add_argument("--attention", action="store_true", help="add a signature that shows the attention")
    parser.add_argument(
        "--deploy", type=str, metavar="DIR", help="directory for files that put the export on TensorFlow Serving"
    )
    parser.add_argument("--model-name", type=str, help="name of the model on the server of --deploy (bert)")
    _add_tflite_options(parser)


def _add_tflite_options(parser: ArgumentParser) -> None:
    forms = typing.Literal[FORMS]  # type: ignore[valid-type]
    parser.add_argument("--quantize", type=forms, help="TFLite: form of the weights (dynamic)")
    parser.add_argument(
        "--length", type=str, help="TFLite: ids of a row, or dynamic for any number up to the model's positions (128)"
    )
    parser.add_argument(
        "--text-in",
        action="store_true",
        help="TFLite: add a signature that takes text, for apps that register operators of tensorflow-text",
    )
    parser.add_argument(
        "--calibration", type=str, metavar="FILE", help="TFLite: texts such as the app will meet; int8 needs them"
    )
    parser.add_argument(
        "--labelled", type=str, metavar="FILE", help="TFLite: labelled texts on which the file is measured"
    )
    parser.add_argument(
        "--max-drop", type=float, help="TFLite: points of agreement, or of the metric, that may be lost (1)"
    )
    parser.add_argument("--allow-drop", action="store_true", help="TFLite: put the file in place even if it lost more")
    for name in _OF_TEXTS:
        text = f"TFLite, of --calibration and --labelled: {column_field(name).metadata['help']}"
        parser.add_argument("--" + name.replace("_", "-"), type=str, help=text)


def run(options: Namespace) -> None:
    """Runs the command."""
    if options.format != "tflite":
        _refuse(options, (*_OF_TFLITE, *_OF_TEXTS), "must go with `format` tflite")
    if options.format == "onnx":
        _refuse_top(options, "an ONNX export")
        _refuse(options, _OF_SERVING, "must be left out of an ONNX export, which TensorFlow Serving does not load")
        import_tensorflow(options.verbose)
        from keras_bert_impl.serving.onnx_export import export_onnx

        export_onnx(options.model, options.target, say=say)
    elif options.format == "tflite":
        _export_tflite(options)
    else:
        _export_saved_model(options)


def _export_saved_model(options: Namespace) -> None:
    from keras_bert_impl.serving.deploy.deployment import check_deployment, write_deployment

    model_name = "bert" if options.model_name is None else options.model_name
    if options.deploy is not None:
        check_deployment(options.deploy, model_name)  # says what is wrong before TensorFlow's start
    elif options.model_name is not None:
        raise InputError(
            "`model_name` must be left out where no files of a server are written: an export has no name. "
            f"Received: model_name={options.model_name!r} without `deploy`"
        )
    import_tensorflow(options.verbose)
    from keras_bert_impl.serving.saved_model import export_saved_model

    export_saved_model(
        options.model,
        options.target,
        top=options.top,
        tokenizer_ops=options.tokenizer_ops or "core",
        attention=options.attention,
        say=say,
    )
    if options.deploy is not None:
        write_deployment(options.target, options.deploy, model_name=model_name, say=say)


def _export_tflite(options: Namespace) -> None:
    _refuse_top(options, "a TFLite export")
    _refuse(options, _OF_SERVING, "must be left out of a TFLite export, which TensorFlow Serving does not load")
    columns = {name: options[name] for name in _OF_TEXTS if options[name] is not None}
    if columns and options.labelled is None and options.calibration is None:
        name, value = next(iter(columns.items()))
        raise InputError(f"`{name}` must go with `labelled` or `calibration`. Received: {name}={value!r} alone")
    length = options.length
    if length is not None and length.isascii() and length.isdigit():
        length = int(length)
    quantize = options.quantize or "dynamic"
    max_drop = 1.0 if options.max_drop is None else options.max_drop
    check_installed()
    # Before TensorFlow's start.
    check_arguments(quantize, length, options.calibration is not None, max_drop, options.text_in)
    import_tensorflow(options.verbose)
    from keras_bert_impl.serving.tflite.export_tflite import export_tflite

    export_tflite(
        options.model,
        options.target,
        quantize=quantize,
        length=length,
        text_in=options.text_in,
        calibration=None if options.calibration is None else lambda asked: _texts(options.calibration, asked, columns),
        calibration_source=repr(options.calibration),
        labelled=None if options.labelled is None else lambda asked: _labelled(options, asked, columns),
        max_drop=max_drop,
        allow_drop=options.allow_drop,
        say=say,
    )


def _texts(file: str, asked: Any, columns: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Reads the texts of `--calibration` for what asks the Keras model."""
    from keras_bert_impl.training.finetuning.scored_examples import read_texts

    return read_texts(file, _settings(asked), columns, "calibration", say)


def _labelled(options: Namespace, asked: Any, columns: dict[str, Any]) -> Any:
    """Reads the examples of `--labelled` for what asks the Keras model."""
    from keras_bert_impl.serving.tflite.labelled_texts import LabelledTexts
    from keras_bert_impl.training.finetuning.scored_examples import read_scored

    settings = _settings(asked)
    if settings is None:
        raise InputError(
            "`labelled` must go with a model that was fine-tuned for a task; of others `calibration` texts say what "
            f"is lost. Received: {options.labelled!r} for {options.model!r}"
        )
    scored = read_scored(options.labelled, options.model, settings, asked.tokenizer, columns, say)
    return LabelledTexts(scored.texts, scored.metric, scored.score, repr(options.labelled))


def _settings(asked: Any) -> Any:
    """Returns the settings of the task; None of what gives vectors or fills masks."""
    from keras_bert_impl.tasks.vector_answers import VectorAnswers

    return None if isinstance(asked, VectorAnswers) else getattr(asked, "settings", None)


def _refuse_top(options: Namespace, what: str) -> None:
    if options.top is not None:
        raise InputError(
            f"`top` must be left out of {what}, which answers with all logits. Received: top={options.top}"
        )


def _refuse(options: Namespace, names: tuple[str, ...], rule: str) -> None:
    for name in names:
        value = options[name]
        if value is not None and value is not False:
            raise InputError(f"`{name}` {rule}. Received: {name}={value!r}")
