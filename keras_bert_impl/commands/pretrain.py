"""`keras-bert pretrain`."""

from jsonargparse import ArgumentParser, Namespace

from keras_bert_impl.command_parser import options_of, settings_from
from keras_bert_impl.commands.say import say
from keras_bert_impl.quiet import import_tensorflow
from keras_bert_impl.training.configs import PretrainConfig


def add_options(parser: ArgumentParser) -> None:
    """Gives the parser this command's options."""
    options_of(PretrainConfig)(parser)
    parser.add_argument("--recipe", type=str, metavar="NAME", help="settings that come with the package, by their name")


def run(options: Namespace) -> None:
    """Runs the command."""
    config = settings_from(PretrainConfig, options)
    import_tensorflow(options.verbose)
    from keras_bert_impl.training.pretrain import pretrain
    from keras_bert_impl.training.stopping import sure_to_stop

    with sure_to_stop():
        pretrain(config, say=say)
