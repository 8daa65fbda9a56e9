"""In a group of one process: of two, whose tables are shared out, see test_sharded_table.py."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
import torch

from models.distributed import kept_tensor, whole_table
from models.distributed.world import ALONE


@pytest.mark.usefixtures("group_of_one")
@pytest.mark.parametrize("large", [False, True])
def test_rows_come_together_in_pieces(large: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A large table leaves no file, and a change of it changes no other process's."""
    monkeypatch.setattr(kept_tensor, "LARGE", 8 if large else 1 << 30)
    monkeypatch.setattr(whole_table, "PIECE", 4)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "large"))
    (tmp_path / "large").mkdir()
    own = torch.randn(11, 3)
    table = whole_table.whole_table(own, 11, ALONE)
    assert torch.equal(table, own)
    table.mul_(2.0)
    assert torch.equal(table, 2.0 * own)
    assert [*(tmp_path / "large").iterdir()] == []
