"""`keras-bert finetune`."""

from jsonargparse import Namespace

from keras_bert_impl.command_parser import options_of, settings_from
from keras_bert_impl.commands.say import say
from keras_bert_impl.quiet import import_tensorflow
from keras_bert_impl.training.configs import FinetuneConfig

add_options = options_of(FinetuneConfig)


def run(options: Namespace) -> None:
    """Runs the command."""
    config = settings_from(FinetuneConfig, options)
    from keras_bert_impl.training.finetuning.before_start import check_settings

    check_settings(config)
    import_tensorflow(options.verbose)
    from keras_bert_impl.training.finetuning.finetune import finetune
    from keras_bert_impl.training.stopping import sure_to_stop

    with sure_to_stop():
        finetune(config, say=say)
