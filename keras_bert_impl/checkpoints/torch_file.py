"""Weights in PyTorch's pickled form, read by PyTorch's own restricted reader or not at all."""

from pathlib import Path
from typing import Any

from keras_bert_impl.checkpoints.checkpoint import StoredTensor
from keras_bert_impl.errors import InputError


def open_torch_file(file: Path) -> list[StoredTensor]:
    """Opens `pytorch_model.bin` with PyTorch's `weights_only=True`, which runs nothing that the file says.

    Args:
        file: the file.

    Raises:
        InputError: if PyTorch is not installed, or the file is damaged or holds more than tensors.
    """
    try:
        import torch
    except ImportError as error:
        raise InputError(
            f"`path` must hold model.safetensors where PyTorch is not installed, since a pickled file can run code. "
            f"Received: {str(file)!r}; install torch, which can read it safely, or save the model as safetensors"
        ) from error
    try:
        state = torch.load(file, map_location="cpu", weights_only=True, mmap=_can_be_mapped(file))
    except Exception as error:  # PyTorch names no class for what it refuses
        raise InputError(
            f"`path` must hold a file of tensors only. Received: {str(file)!r}, which is damaged or holds something "
            f"else; nothing in it was run"
        ) from error
    if not isinstance(state, dict) or not all(isinstance(tensor, torch.Tensor) for tensor in state.values()):
        raise InputError(f"`path` must hold a dict of tensors. Received: {str(file)!r}, which holds something else")
    return [
        StoredTensor(
            name=str(name),
            shape=tuple(tensor.shape),
            dtype=str(tensor.dtype).removeprefix("torch."),
            read=_TorchRead(tensor),
        )
        for name, tensor in state.items()
    ]


def _can_be_mapped(file: Path) -> bool:
    """Whether the file is of the zipped form that PyTorch 1.6 and later write."""
    with file.open("rb") as stream:
        return stream.read(2) == b"PK"


class _TorchRead:
    def __init__(self, tensor: Any) -> None:
        self._tensor = tensor

    def __call__(self) -> Any:
        tensor = self._tensor.detach()
        return (tensor.float() if tensor.is_floating_point() else tensor).numpy()
