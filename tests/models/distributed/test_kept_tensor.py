from __future__ import annotations

from pathlib import Path

import pytest
import torch

from models.distributed import kept_tensor
from models.distributed.kept_tensor import kept_copy


@pytest.mark.parametrize("large", [False, True])
def test_a_copy_stays_as_it_was_and_is_written_again(
    large: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_tensor, "LARGE", 8 if large else 1 << 30)
    tensor = torch.arange(6.0).view(2, 3)
    kept = kept_copy(tensor, folder=tmp_path / "models")
    tensor.add_(1.0)
    assert torch.equal(kept, tensor - 1.0)
    assert kept_copy(tensor, kept) is kept
    assert torch.equal(kept, tensor)
    assert [*tmp_path.rglob("*.kept*"), *tmp_path.rglob(".kept*")] == []
    assert (tmp_path / "models").exists() == large


def test_nothing_and_single_numbers_are_kept_as_well() -> None:
    assert kept_copy(torch.empty(0, 3)).shape == (0, 3)
    assert kept_copy(torch.tensor(4.0)).item() == 4.0
