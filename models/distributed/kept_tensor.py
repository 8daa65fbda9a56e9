"""Copies of tensors that are read again at the end of a run: large ones live in a file, and in memory as it has room.

The file is deleted as soon as it is mapped, so that nothing is left of it when the process ends, however it ends.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import torch
from torch import Tensor

LARGE = 1 << 28  # bytes from which a copy goes to disk


def kept_copy(tensor: Tensor, before: Tensor | None = None, folder: Path | None = None) -> Tensor:
    """A copy on the CPU, in the place of the one from `before`; large ones in a file of `folder`, by default that for
    temporary files (TMPDIR)."""
    if before is None:
        before = _mapped(tensor, folder) if tensor.numel() * tensor.element_size() >= LARGE else torch.empty_like(
            tensor, device="cpu", memory_format=torch.contiguous_format)
    return before.copy_(tensor)


def _mapped(tensor: Tensor, folder: Path | None) -> Tensor:
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=folder, prefix=".kept-") as file:
        return torch.from_file(file.name, shared=True, size=tensor.numel(), dtype=tensor.dtype).view(tensor.shape)
