"""Reference runs of any shape: drawn batches, and PyTorch's training on them where it is installed.

As a script, with a Python that has PyTorch and transformers: `python tests/reference_runs.py FOLDER '{"clip": null}'`.
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

SETTINGS = {
    "optimizer": "AdamW with bias correction, decoupled decay",
    "betas": [0.9, 0.999],
    "epsilon": 1e-6,
    "weight_decay": 0.01,
    "no_decay": "biases and LayerNorm weights",
    "clip": "global norm 1.0 of the whole batch's gradient",
    "loss": "sum(w*ce)/(sum(w)+1e-5) + mean NSP cross entropy",
}
MODEL = {
    "vocab_size": 61,
    "hidden_size": 24,
    "num_hidden_layers": 1,
    "num_attention_heads": 3,
    "intermediate_size": 40,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
    "max_position_embeddings": 20,
}


def draw_batches(steps: int, batch: int, length: int, predictions: int, vocab_size: int, seed: int = 0) -> dict:
    """Returns all batches of a run, padded, with predictions that are not used, two of them between used ones."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(length // 2, length + 1, (steps, batch, 1))
    real = np.arange(length) < sizes
    second = np.arange(length) >= rng.integers(2, length // 2 + 1, (steps, batch, 1))
    weights = (rng.random((steps, batch, predictions)) < 0.7).astype("float32")
    weights[:, 0] = 1
    return {
        "token_ids": np.where(real, rng.integers(1, vocab_size, real.shape), 0).astype("int32"),
        "segment_ids": (real & second).astype("int32"),
        "padding_mask": real.astype("int32"),
        "positions": (rng.random(weights.shape) * sizes).astype("int32"),
        "labels": rng.integers(1, vocab_size, weights.shape).astype("int32"),
        "weights": weights,
        "nsp": rng.integers(0, 2, (steps, batch)).astype("int32"),
    }


def write_run(folder: Path, batches: dict[str, np.ndarray], **values: Any) -> None:
    """Writes batches and settings; `learning_rate` is 1e-3 in every step when not given."""
    rates = {"learning_rate": [1e-3] * len(batches["token_ids"])}
    np.savez(folder / "batches.npz", **batches)
    (folder / "run.json").write_text(json.dumps({**SETTINGS, **rates, **values}), encoding="utf-8")


def train_with_pytorch(
    folder: Path, *, model: dict | None = None, sizes: tuple = (6, 4, 16, 5), lamb: str = "", **values: Any
) -> None:
    """Writes a run of PyTorch and Hugging Face's BERT.

    Args:
        folder: a new folder.
        model: fields of the configuration.
        sizes: steps, batch, length, predictions.
        lamb: `"decayed"` or `"all"`: variables whose step follows their own norm.
        **values: fields of run.json; the words "without bias correction", "clip" null and "NSP" are obeyed.
    """
    import torch
    import transformers

    torch.manual_seed(0)
    config = transformers.BertConfig(**{**MODEL, **(model or {})})
    with_next_sentence = "NSP" in values.get("loss", SETTINGS["loss"])
    name = "BertForPreTraining" if with_next_sentence else "BertForMaskedLM"
    bert = getattr(transformers, name)(config).eval()
    for parameter in bert.parameters():
        parameter.data += 0.02 * torch.randn_like(parameter)
    bert.save_pretrained(folder)
    batches = draw_batches(*sizes, config.vocab_size)
    settings = {**SETTINGS, "learning_rate": [1e-3 * (step + 1) for step in range(sizes[0])], **values}
    means = [torch.zeros_like(parameter) for parameter in bert.parameters()]
    squares = [torch.zeros_like(parameter) for parameter in bert.parameters()]
    losses = []
    for step, rate in enumerate(settings["learning_rate"]):
        batch = {key: torch.from_numpy(array[step]) for key, array in batches.items()}
        out = bert(
            input_ids=batch["token_ids"].long(),
            token_type_ids=batch["segment_ids"].long(),
            attention_mask=batch["padding_mask"].long(),
        )
        logits = out.prediction_logits if with_next_sentence else out.logits
        logits = torch.gather(logits, 1, batch["positions"].long()[..., None].expand(-1, -1, config.vocab_size))
        entropy = torch.nn.functional.cross_entropy(logits.transpose(1, 2), batch["labels"].long(), reduction="none")
        loss = (batch["weights"] * entropy).sum() / (batch["weights"].sum() + 1e-5)
        if with_next_sentence:
            loss = loss + torch.nn.functional.cross_entropy(out.seq_relationship_logits, batch["nsp"].long())
        bert.zero_grad()
        loss.backward()
        losses.append(loss.item())
        if settings["clip"] is not None:
            torch.nn.utils.clip_grad_norm_(bert.parameters(), 1.0)
        with torch.no_grad():
            _update(bert, means, squares, step, rate, settings, lamb)
    state = {key: value.detach().clone().contiguous() for key, value in bert.state_dict().items()}
    import safetensors.torch

    tied = ("cls.predictions.decoder.weight", "cls.predictions.decoder.bias")
    state = {key: value for key, value in state.items() if key not in tied}
    safetensors.torch.save_file(state, folder / "final.safetensors")
    write_run(folder, batches, **settings, loss_per_step=losses)


def _update(bert: Any, means: list, squares: list, step: int, rate: float, settings: dict, lamb: str) -> None:
    """Takes one step of AdamW or LAMB, written out."""
    beta_1, beta_2 = settings["betas"]
    for (name, parameter), mean, square in zip(bert.named_parameters(), means, squares, strict=True):
        mean.mul_(beta_1).add_(parameter.grad, alpha=1 - beta_1)
        square.mul_(beta_2).add_(parameter.grad**2, alpha=1 - beta_2)
        corrected, corrected_square = mean, square
        if "without bias correction" not in settings["optimizer"]:
            corrected, corrected_square = mean / (1 - beta_1 ** (step + 1)), square / (1 - beta_2 ** (step + 1))
        update = corrected / (corrected_square.sqrt() + settings["epsilon"])
        decayed = settings["no_decay"] is None or not (name.endswith("bias") or "LayerNorm" in name)
        if decayed:
            update = update + settings["weight_decay"] * parameter
        if lamb == "all" or (lamb and decayed):
            norm, length = parameter.norm(), update.norm()
            if norm > 0 and length > 0:
                update = update * (norm / length)
        parameter -= rate * update


if __name__ == "__main__":
    Path(sys.argv[1]).mkdir(parents=True)
    train_with_pytorch(Path(sys.argv[1]), **json.loads(sys.argv[2]))
