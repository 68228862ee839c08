"""`keras-bert export`, in each format."""

import typing

from jsonargparse import ArgumentParser, Namespace

from keras_bert_impl.commands.say import say
from keras_bert_impl.errors import InputError
from keras_bert_impl.quiet import import_tensorflow


def add_options(parser: ArgumentParser) -> None:
    """Gives the parser this command's options."""
    parser.add_argument("model", type=str, metavar="MODEL", help="model directory or run directory")
    parser.add_argument(
        "target", type=str, metavar="TARGET_DIR", help="directory that gets a numbered version; for ONNX, a new one"
    )
    formats = typing.Literal["savedmodel", "onnx"]
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


def run(options: Namespace) -> None:
    """Runs the command."""
    if options.format == "onnx":
        if options.top is not None:
            raise InputError(
                f"`top` must be left out of an ONNX export, which answers with all logits. Received: top={options.top}"
            )
        for name in ("tokenizer_ops", "attention", "deploy", "model_name"):
            if options[name]:
                raise InputError(
                    f"`{name}` must be left out of an ONNX export, which TensorFlow Serving does not load. "
                    f"Received: {name}={options[name]!r}"
                )
        import_tensorflow(options.verbose)
        from keras_bert_impl.serving.onnx_export import export_onnx

        export_onnx(options.model, options.target, say=say)
        return
    from keras_bert_impl.serving.deploy.deployment import check_deployment, write_deployment

    model_name = options.model_name or "bert"
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
