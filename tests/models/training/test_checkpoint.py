from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from contracts.errors import BundleError
from models.training import checkpoint


@pytest.mark.parametrize(("other", "says"), [
    (nn.Linear(3, 3), "has shape"), (nn.Linear(3, 2, bias=False), "has no place"), (nn.BatchNorm1d(2), "is missing"),
])
def test_weights_of_another_network_are_refused(other: nn.Module, says: str, tmp_path: Path) -> None:
    checkpoint.save(nn.Linear(3, 2), tmp_path / "w.safetensors")
    with pytest.raises(BundleError, match=says):
        checkpoint.load(other, tmp_path / "w.safetensors")


def mapped_from(tensor: torch.Tensor, path: Path) -> bool:
    """Do its numbers lie in a mapping of the file?"""
    place = tensor.data_ptr()
    for line in Path("/proc/self/maps").read_text().splitlines():
        start, end = (int(part, 16) for part in line.split()[0].split("-"))
        if start <= place < end:
            return line.endswith(str(path))
    return False


@pytest.mark.parametrize("mapped", [True, False])
def test_weights_are_the_files_pages_where_they_are_mapped(mapped: bool, tmp_path: Path) -> None:
    path, saved, found = tmp_path / "w.safetensors", nn.Linear(3, 2), nn.Linear(3, 2)
    checkpoint.save(saved, path)
    checkpoint.load(found, path, mapped)
    for mine, own in zip(found.parameters(), saved.parameters(), strict=True):
        torch.testing.assert_close(mine, own)
        assert mine.requires_grad
        assert mapped_from(mine, path) is mapped
