from __future__ import annotations

import torch

from models.distributed.world import ALONE, World


def test_every_row_has_one_owner() -> None:
    table = torch.arange(11)
    parts = [World(rank, 3).own(table) for rank in range(3)]
    assert sorted(torch.cat(parts).tolist()) == table.tolist()
    assert all((part % 3 == rank).all() for rank, part in enumerate(parts))
    assert torch.equal(ALONE.own(table), table)
