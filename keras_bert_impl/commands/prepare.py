"""`keras-bert prepare`, in this process or as a pipeline of Apache Beam."""

from jsonargparse import ArgumentParser, Namespace

from keras_bert_impl.command_parser import options_of, settings_from
from keras_bert_impl.commands.say import say
from keras_bert_impl.quiet import import_tensorflow
from keras_bert_impl.training.configs import PrepareConfig


def add_options(parser: ArgumentParser) -> None:
    """Gives the parser this command's options."""
    options_of(PrepareConfig, ["inputs"])(parser)
    parser.add_argument(
        "--beam",
        type=str,
        metavar="OPTIONS",
        help="run as a pipeline of Apache Beam with these options, such as '--runner=DirectRunner'",
    )


def run(options: Namespace) -> None:
    """Runs the command."""
    config = settings_from(PrepareConfig, options)
    if options.beam is not None:
        from keras_bert_impl.training.beam_prepare import prepare_with_beam

        prepare_with_beam(config, options.beam, say=say)
        return
    if config.writes_records:
        import_tensorflow(options.verbose)
    from keras_bert_impl.training.prepare import prepare

    prepare(config, say=say)
