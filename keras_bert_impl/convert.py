"""From one format of weights to another, with everything that was left, renamed or changed said."""

import dataclasses
import os
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

from keras_bert_impl.atomic import atomic_path
from keras_bert_impl.checkpoints.checkpoint import Checkpoint
from keras_bert_impl.checkpoints.formats import open_checkpoint
from keras_bert_impl.checkpoints.hugging_face import tensor_name
from keras_bert_impl.checkpoints.load import checked_load
from keras_bert_impl.checkpoints.surgery import extend_vocabulary, keep_blocks, resize_positions
from keras_bert_impl.checkpoints.tokenizer_files import tokenizer_beside
from keras_bert_impl.errors import InputError
from keras_bert_impl.models.architectures import model_class
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


def convert(
    source: Any,
    target: str | os.PathLike[str],
    to: str,
    *,
    architecture: str | None = None,
    vocab: str | os.PathLike[str] | None = None,
    labels: Sequence[str] | None = None,
    allow_missing: Collection[str] = (),
    allow_unused: Collection[str] = (),
    allow_wrong_shape: Collection[str] = (),
    allow_inexact: Collection[str] = (),
    surgery: Surgery | None = None,
    seed: int = 0,
    say: Callable[[str], None] = lambda line: None,
) -> dict[str, Any]:
    """Reads a checkpoint of any format that is known and writes it in another.

    Args:
        source: what `open_checkpoint` opens.
        target: directory to write, or file for `"keras"`.
        to: `"huggingface"`, `"keras_hub"` or `"keras"`.
        architecture: what the result is to be, for example `"BertModel"` for the encoder alone, which leaves the
            heads; what the checkpoint is when not given.
        vocab: vocabulary file; the one beside the weights when not given.
        labels: names for the outputs of a classifier whose checkpoint only numbers them.
        allow_missing, allow_unused, allow_wrong_shape, allow_inexact: as for `from_pretrained`.
        surgery: what is to change on the way.
        seed: of the parts that start fresh.
        say: takes each line of narration.

    Returns:
        A dict with `source`, `target`, `to`, `architecture`, `parameters`, `tokens` (of the vocabulary, or None),
        `report` (`LoadReport.to_dict()`), and `renamed`: old and new name of every tensor that has another name now.

    Raises:
        InputError: if the source cannot be read, something in it would be lost without being named as allowed, or
            the target's format cannot hold the model.
    """
    _check_target(target, to)
    checkpoint = open_checkpoint(source)
    tokenizer = tokenizer_beside(checkpoint, source, vocab, say)
    say(f"Opened {checkpoint.source}: {checkpoint.architecture}, {len(checkpoint.tensors)} tensors.")
    checkpoint, tokenizer = _operate(checkpoint, tokenizer, surgery or Surgery(), say)
    if tokenizer is not None and tokenizer.vocab_size > checkpoint.config.vocab_size:
        raise InputError(
            "`vocab` must not have more tokens than the model has rows. "
            f"Received: {tokenizer.vocab_size} tokens, {checkpoint.config.vocab_size} rows"
        )

    cls = model_class(architecture or checkpoint.architecture)
    options: dict[str, Any] = {} if labels is None else {"labels": labels}
    if cls.architecture == "BertModel" and "pooler" not in checkpoint.parts and "pooler" not in allow_missing:
        options["pooler"] = False
    if architecture is None:
        # Nothing may be lost that the user did not name, not even what another task's model would leave.
        shapes = cls.tensor_shapes(checkpoint.config, **cls.options_from(checkpoint, options))
        checked_load(
            checkpoint,
            shapes,
            allow_missing=allow_missing,
            allow_unused=allow_unused,
            allow_wrong_shape=allow_wrong_shape,
            allow_inexact=allow_inexact,
        )
    model = cls.from_pretrained(
        checkpoint,
        seed=seed,
        allow_missing=allow_missing,
        allow_unused=allow_unused,
        allow_wrong_shape=allow_wrong_shape,
        allow_inexact=allow_inexact,
        **options,
    )
    report = model.load_report
    assert report is not None
    say(str(report))
    _write(model, tokenizer, Path(target), to, say)
    renamed = _renamed(checkpoint, cls.architecture) if to == "huggingface" else []
    if renamed:
        say(f"{len(renamed)} tensors have another name now, for example {renamed[0][0]} -> {renamed[0][1]}.")
    say(f"Wrote {type(model).__name__} with {model.count_params():,} parameters to {target}.")
    return {
        "source": checkpoint.source,
        "target": str(target),
        "to": to,
        "architecture": cls.architecture,
        "parameters": model.count_params(),
        "tokens": None if tokenizer is None else tokenizer.vocab_size,
        "report": report.to_dict(),
        "renamed": renamed,
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


def _check_target(target: str | os.PathLike[str], to: str) -> None:
    if to not in TARGETS:
        raise InputError(f"`to` must be one of {', '.join(TARGETS)}. Received: to={to!r}")
    if to == "keras" and Path(target).suffix != ".keras":
        raise InputError(f"`target` must be a file that ends in .keras. Received: {str(target)!r}")


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


def _write(model: Any, tokenizer: WordPieceTokenizer | None, target: Path, to: str, say: Callable[[str], None]) -> None:
    if to == "huggingface":
        model.save_pretrained(target, tokenizer=tokenizer)
    elif to == "keras_hub":
        from keras_bert_impl.checkpoints.keras_hub import write_keras_hub

        write_keras_hub(target, model, tokenizer=tokenizer)
    else:
        with atomic_path(target) as path:
            model.save(path)
        if tokenizer is not None:
            say("A .keras file holds no vocabulary: keep the one of the source beside it.")
    if tokenizer is None:
        say("There is no vocabulary beside the weights, so none was written; `vocab` names one.")


def _renamed(checkpoint: Checkpoint, architecture: str) -> list[tuple[str, str]]:
    pairs = [(tensor.name, tensor_name(key, architecture)) for key, tensor in checkpoint.tensors.items()]
    return [(old, new) for old, new in pairs if old != new]
