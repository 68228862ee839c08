"""`keras-bert vocab`."""

from jsonargparse import Namespace

from keras_bert_impl.command_parser import options_of, settings_from
from keras_bert_impl.commands.say import say
from keras_bert_impl.training.configs import VocabConfig

add_options = options_of(VocabConfig, ["inputs"])


def run(options: Namespace) -> None:
    """Runs the command."""
    from keras_bert_impl.training.vocab import learn_vocab

    learn_vocab(settings_from(VocabConfig, options), say=say)
