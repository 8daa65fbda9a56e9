from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch

from contracts.errors import ConfigError
from models.layers import own_rows
from models.layers.own_rows import dealt, drawn, put


@pytest.mark.parametrize("rows", [5, 40, 64, 71, 130])
@pytest.mark.parametrize("dim", [1, 3, 16])
@pytest.mark.parametrize("size", [2, 3, 4])
def test_rows_start_as_in_one_process(rows: int, dim: int, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """So does whatever is drawn after them."""
    monkeypatch.setattr(own_rows, "PIECE", 16)
    torch.manual_seed(3)
    whole, after = drawn(rows, dim, 0.1), torch.rand(4)
    for rank in range(size):
        torch.manual_seed(3)
        with dealt(rank, size):
            part = drawn(rows, dim, 0.1)
        assert torch.equal(part, whole[rank::size])
        assert torch.equal(torch.rand(4), after)


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize(("first", "count"), [(0, 1), (2, 5), (7, 4), (10, 1), (5, 0)])
def test_values_go_to_their_rows(size: int, first: int, count: int) -> None:
    table = torch.zeros(11, 4)
    values = torch.arange(1.0, 1.0 + 3 * count).view(count, 3)
    wanted = table.clone()
    wanted[first : first + count, :3] = values
    for rank in range(size):
        own = slice(rank, None, size)
        part = torch.nn.Parameter(table[own].clone())
        put(part, own, first, values)
        assert torch.equal(part, wanted[own])


def test_more_rows_than_int32_names_are_refused() -> None:
    with pytest.raises(ConfigError, match="2147483648 rows; int32 ids name 2147483647"):
        drawn(2**31, 1, 0.1)


def test_a_table_whose_weights_come_from_a_file_takes_no_memory() -> None:
    def resident() -> int:
        return int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1]) * os.sysconf("SC_PAGE_SIZE")

    before = resident()
    with own_rows.undrawn():
        table = drawn(4_000_000, 16, 0.1)
    assert len(table) == 4_000_000
    assert resident() - before < 4_000_000 * 16
    assert drawn(2, 1, 0.1).abs().min() > 0


def test_outside_all_rows_are_built() -> None:
    with dealt(1, 4):
        assert own_rows.own_rows() == slice(1, None, 4)
    assert own_rows.own_rows() == own_rows.WHOLE
