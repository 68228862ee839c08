"""From one format of weights to another, with everything that was left, renamed or changed said."""

import dataclasses
import os
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

from keras_bert_impl.atomic import atomic_path
from keras_bert_impl.checkpoints.architecture import PARTS
from keras_bert_impl.checkpoints.checkpoint import Checkpoint
from keras_bert_impl.checkpoints.formats import open_checkpoint
from keras_bert_impl.checkpoints.hugging_face import check_model_target, other_files, tensor_name
from keras_bert_impl.checkpoints.keras_hub_names import check_preset_target
from keras_bert_impl.checkpoints.load import checked_load
from keras_bert_impl.checkpoints.model_directory import model_directory
from keras_bert_impl.checkpoints.surgery import extend_vocabulary, keep_blocks, resize_positions
from keras_bert_impl.checkpoints.tokenizer_files import tokenizer_beside
from keras_bert_impl.errors import InputError
from keras_bert_impl.tokenization.wordpiece import WordPieceTokenizer

TARGETS = ("huggingface", "keras_hub", "keras")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Surgery:
    """What is to change on the way.

    Attributes:
        add_tokens: words to add to the vocabulary.
        token_rule: where their rows come from; see `extend_vocabulary`.
        max_position_embeddings: positions of the result; as they are when None.
        position_rule: where more positions come from; see `resize_positions`.
        blocks: how many of the first transformer blocks to keep, or which; all when None.
        seed: of random rows.
    """

    add_tokens: Sequence[str] = ()
    token_rule: str = "pieces"
    max_position_embeddings: int | None = None
    position_rule: str = "repeat"
    blocks: int | Sequence[int] | None = None
    seed: int = 0


@dataclasses.dataclass(frozen=True, kw_only=True)
class Conversion:
    """What is to become of which checkpoint. Making one checks all that can be checked before a weight is read.

    Args:
        source: what `open_checkpoint` opens.
        target: directory to write, or file for `"keras"`.
        to: `"huggingface"`, `"keras_hub"` or `"keras"`.
        architecture: what the result is to be, for example `"BertModel"` for the encoder alone, which leaves the
            heads; what the checkpoint is when not given.
        vocab: vocabulary file; the one beside the weights when not given.
        labels: names for the outputs of a classifier whose checkpoint only numbers them, or that starts fresh.
        fresh, allow_missing, allow_unused, allow_inexact: as for `from_pretrained`.
        surgery: what is to change on the way.
        seed: of the parts that start fresh.

    Raises:
        InputError: if the source cannot be read, or the target cannot be written there.
    """

    source: Any
    target: str | os.PathLike[str]
    to: str
    architecture: str | None = None
    vocab: str | os.PathLike[str] | None = None
    labels: Sequence[str] | None = None
    fresh: Collection[str] = ()
    allow_missing: Collection[str] = ()
    allow_unused: Collection[str] = ()
    allow_inexact: Collection[str] = ()
    surgery: Surgery = dataclasses.field(default_factory=Surgery)
    seed: int = 0

    def __post_init__(self) -> None:
        _check_target(self.source, self.target, self.to)
        if self.architecture is not None and self.architecture not in PARTS:
            raise InputError(
                f"`architecture` must be one of {', '.join(PARTS)}. Received: architecture={self.architecture!r}"
            )

    def open(self, say: Callable[[str], None] = lambda line: None) -> tuple[Checkpoint, WordPieceTokenizer | None]:
        """Opens the source and its vocabulary, and operates on them; no weight is read yet."""
        checkpoint = open_checkpoint(self.source)
        tokenizer = tokenizer_beside(checkpoint, self.source, self.vocab, say)
        say(f"Opened {checkpoint.source}: {checkpoint.architecture}, {len(checkpoint.tensors)} tensors.")
        checkpoint, tokenizer = _operate(checkpoint, tokenizer, self.surgery, say)
        if tokenizer is not None and tokenizer.vocab_size > checkpoint.config.vocab_size:
            raise InputError(
                "`vocab` must not have more tokens than the model has rows. "
                f"Received: {tokenizer.vocab_size} tokens, {checkpoint.config.vocab_size} rows"
            )
        if self.to == "keras_hub":
            from keras_bert_impl.checkpoints.keras_hub_writer import check_config

            check_config(checkpoint.config)
        return checkpoint, tokenizer


def convert(conversion: Conversion, say: Callable[[str], None] = lambda line: None) -> dict[str, Any]:
    """Reads a checkpoint of any format that is known and writes it in another.

    Args:
        conversion: what is to be done.
        say: takes each line of narration.

    Returns:
        A dict with `source`, `target`, `to`, `architecture`, `parameters`, `tokens` (of the vocabulary that was
        written, or None), `report` (`LoadReport.to_dict()`), `renamed`: old and new name of every tensor that has
        another name now, and `left_files`: what lies beside the weights of the source and was not carried over.

    Raises:
        InputError: if something in the source would be lost without being named as allowed, or the target's format
            cannot hold the model.
    """
    from keras_bert_impl.models.architectures import model_class  # opens Keras, which the checks do not need

    checkpoint, tokenizer = conversion.open(say)
    cls = model_class(conversion.architecture or checkpoint.architecture)
    options: dict[str, Any] = {} if conversion.labels is None else {"labels": conversion.labels}
    if cls.architecture == "BertModel" and "pooler" not in (*checkpoint.parts, *conversion.allow_missing):
        options["pooler"] = False
    if conversion.architecture is None and not conversion.fresh:
        # Nothing may be lost that the user did not name, not even what another task's model would leave.
        shapes = cls.tensor_shapes(checkpoint.config, **cls.options_from(checkpoint, options))
        checked_load(
            checkpoint,
            shapes,
            allow_missing=conversion.allow_missing,
            allow_unused=conversion.allow_unused,
            allow_inexact=conversion.allow_inexact,
        )
    model = cls.from_pretrained(
        checkpoint,
        dtype="float32",
        seed=conversion.seed,
        fresh=conversion.fresh,
        allow_missing=conversion.allow_missing,
        allow_unused=conversion.allow_unused,
        allow_inexact=conversion.allow_inexact,
        **options,
    )
    report = model.load_report
    assert report is not None
    say(str(report))
    for part in report.fresh_parts:
        say(f"The {part} starts with fresh weights.")
    _write(model, tokenizer, conversion, say)
    renamed = _renamed(checkpoint, cls.architecture) if conversion.to == "huggingface" else []
    if renamed:
        say(f"{len(renamed)} tensors have another name now, for example {renamed[0][0]} -> {renamed[0][1]}.")
    left_files = other_files(model_directory(conversion.source)) if checkpoint.format == "huggingface" else []
    if left_files:
        say(f"Not carried over, since they are no part of a BERT: {', '.join(left_files)}.")
    say(f"Wrote {cls.architecture} with {model.count_params():,} parameters to {conversion.target}.")
    return {
        "source": checkpoint.source,
        "target": str(conversion.target),
        "to": conversion.to,
        "architecture": cls.architecture,
        "parameters": model.count_params(),
        "tokens": None if tokenizer is None or conversion.to == "keras" else tokenizer.vocab_size,
        "report": report.to_dict(),
        "renamed": renamed,
        "left_files": left_files,
    }


def read_words(path: str | os.PathLike[str]) -> list[str]:
    """Returns the words of a file, one on a line; blank lines are passed over.

    Raises:
        InputError: if the file is not UTF-8 text or not there.
    """
    try:
        content = Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"`add_tokens_from` must be a UTF-8 text file. Received: {str(path)!r} ({error})") from error
    return [line.strip() for line in content.split("\n") if line.strip()]


def _check_target(source: Any, target: str | os.PathLike[str], to: str) -> None:
    if to not in TARGETS:
        raise InputError(f"`to` must be one of {', '.join(TARGETS)}. Received: to={to!r}")
    path = Path(target)
    if (path.suffix == ".keras") != (to == "keras"):
        rule = "a file that ends in .keras" if to == "keras" else "a directory, not a .keras file"
        raise InputError(f"`target` must be {rule}. Received: {str(target)!r}")
    if isinstance(source, str | os.PathLike) and path.exists() and path.resolve() == Path(source).resolve():
        raise InputError(f"`target` must be another place than the source. Received: {str(target)!r}")
    if to == "keras" and path.is_dir():
        raise InputError(f"`target` must be a file. Received: {str(target)!r}, which is a directory")
    if to == "huggingface":
        check_model_target(path, "target")
    elif to == "keras_hub":
        check_preset_target(path, "target")


def _operate(
    checkpoint: Checkpoint, tokenizer: WordPieceTokenizer | None, surgery: Surgery, say: Callable[[str], None]
) -> tuple[Checkpoint, WordPieceTokenizer | None]:
    if surgery.add_tokens:
        if tokenizer is None:
            raise InputError(
                f"`add_tokens` needs the vocabulary of the model. Received: {checkpoint.source!r}, which has none "
                "beside it; `vocab` names one"
            )
        checkpoint, tokenizer = extend_vocabulary(
            checkpoint, tokenizer, surgery.add_tokens, rule=surgery.token_rule, seed=surgery.seed
        )
        say(
            f"Added {len(surgery.add_tokens)} tokens (rows by the rule {surgery.token_rule!r}): "
            f"{tokenizer.vocab_size} tokens, {checkpoint.config.vocab_size} rows."
        )
    if surgery.max_position_embeddings is not None:
        before = checkpoint.config.max_position_embeddings
        checkpoint = resize_positions(
            checkpoint, surgery.max_position_embeddings, rule=surgery.position_rule, seed=surgery.seed
        )
        rule = f" (rows by the rule {surgery.position_rule!r})" if surgery.max_position_embeddings > before else ""
        say(f"Positions: {before} -> {surgery.max_position_embeddings}{rule}.")
    if surgery.blocks is not None:
        before = checkpoint.config.num_hidden_layers
        checkpoint = keep_blocks(checkpoint, surgery.blocks)
        say(f"Transformer blocks: {before} -> {checkpoint.config.num_hidden_layers}.")
    return checkpoint, tokenizer


def _write(
    model: Any, tokenizer: WordPieceTokenizer | None, conversion: Conversion, say: Callable[[str], None]
) -> None:
    target = Path(conversion.target)
    if target.is_file() or (target.is_dir() and any(target.iterdir())):
        say(f"Replacing what {target} holds.")
    if conversion.to == "keras":
        with atomic_path(target) as path:
            model.save(path)
        say("A .keras file holds no vocabulary: keep the one of the source beside it.")
        return
    if tokenizer is None:
        say("There is no vocabulary beside the weights, so none is written; `vocab` names one.")
    if conversion.to == "huggingface":
        model.save_pretrained(target, tokenizer=tokenizer)
    else:
        from keras_bert_impl.checkpoints.keras_hub import write_keras_hub

        write_keras_hub(target, model, tokenizer=tokenizer)


def _renamed(checkpoint: Checkpoint, architecture: str) -> list[tuple[str, str]]:
    pairs = [(tensor.name, tensor_name(key, architecture)) for key, tensor in checkpoint.tensors.items()]
    return [(old, new) for old, new in pairs if old != new]
