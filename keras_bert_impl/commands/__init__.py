"""The subcommands: each is a module with `add_options` and `run`, which opens other rooms only when it runs."""

import dataclasses
from collections.abc import Callable

from jsonargparse import ArgumentParser, Namespace

from keras_bert_impl.commands import (
    convert,
    demo,
    evaluate,
    export,
    fill_mask,
    finetune,
    inspect,
    predict,
    prepare,
    pretrain,
    serve,
    vocab,
)


@dataclasses.dataclass(frozen=True)
class Command:
    """One subcommand: what the overview says of it, its options, and what runs it."""

    summary: str
    add_options: Callable[[ArgumentParser], None]
    run: Callable[[Namespace], None]


COMMANDS = {
    "vocab": Command("learn a WordPiece vocabulary, or extend one", vocab.add_options, vocab.run),
    "prepare": Command("turn text into pretraining examples", prepare.add_options, prepare.run),
    "pretrain": Command("pretrain BERT on prepared data", pretrain.add_options, pretrain.run),
    "evaluate": Command("measure a model on held-out data", evaluate.add_options, evaluate.run),
    "finetune": Command("fine-tune a model for a task on labelled data", finetune.add_options, finetune.run),
    "predict": Command("let a model answer texts, row by row", predict.add_options, predict.run),
    "fill-mask": Command("let a model fill in [MASK]", fill_mask.add_options, fill_mask.run),
    "convert": Command("write a model in another format, or of another size", convert.add_options, convert.run),
    "inspect": Command(
        "say what a model, run, data or export is, or draw its attention", inspect.add_options, inspect.run
    ),
    "export": Command("export a model for TensorFlow Serving", export.add_options, export.run),
    "serve": Command("serve an export on this machine", serve.add_options, serve.run),
    "demo": Command("go the whole way once, on real text", demo.add_options, demo.run),
}

WITH_CONFIG = ("vocab", "prepare", "pretrain", "evaluate", "finetune", "predict")
"""Commands that take `--config`."""
