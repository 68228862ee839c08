"""`keras-bert serve`."""

import dataclasses

from jsonargparse import ArgumentParser, Namespace

from keras_bert_impl.commands.say import say
from keras_bert_impl.quiet import import_tensorflow


def add_options(parser: ArgumentParser) -> None:
    """Gives the parser this command's options."""
    parser.add_argument(
        "exports",
        type=str,
        nargs="+",
        metavar="EXPORT_DIR",
        help="directory that `export` wrote; NAME=EXPORT_DIR for several models",
    )
    parser.add_argument("--host", type=str, default="127.0.0.1", help="address to listen on")
    parser.add_argument("--rest-port", type=int, default=8501, help="port of the REST interface; 0 for a free one")
    parser.add_argument("--grpc-port", type=int, default=8500, help="port of the gRPC interface; 0 for a free one")
    parser.add_argument("--no-rest", action="store_true", help="no REST interface")
    parser.add_argument("--no-grpc", action="store_true", help="no gRPC interface")
    parser.add_argument(
        "--model-name", type=str, default="bert", help="name of a model without NAME=, as in /v1/models/NAME"
    )
    parser.add_argument("--max-body-mb", type=float, default=32, help="requests of more megabytes are refused")
    parser.add_argument("--max-request-rows", type=int, default=1024, help="requests of more rows are refused")
    parser.add_argument(
        "--max-batch-rows", type=int, default=32, help="rows up to which requests are joined into one run; 1 for none"
    )
    parser.add_argument(
        "--batch-timeout-ms", type=float, default=2, help="milliseconds that a request is held back for others"
    )
    parser.add_argument("--max-waiting", type=int, default=256, help="requests that may wait; more are refused")
    parser.add_argument("--poll-seconds", type=float, default=1, help="how often new versions are looked for")
    parser.add_argument("--json-log", action="store_true", help="a line of JSON for each request on the error stream")


def run(options: Namespace) -> None:
    """Runs the command."""
    from keras_bert_impl.serving.local_server import named_exports, serve
    from keras_bert_impl.serving.server.settings import ServerSettings

    models = named_exports(options.exports, options.model_name)
    settings = {field.name: options[field.name] for field in dataclasses.fields(ServerSettings)}
    settings |= {f"{protocol}_port": None for protocol in ("rest", "grpc") if options[f"no_{protocol}"]}
    ServerSettings(**settings)  # says what is wrong before TensorFlow's start
    # Requests have thousands of shapes, and memory must stay flat; answers are as fast without.
    import_tensorflow(options.verbose, onednn=False)
    serve(models, say=say, **settings)
