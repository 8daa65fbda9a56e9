from __future__ import annotations

from pathlib import Path

import pytest
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
