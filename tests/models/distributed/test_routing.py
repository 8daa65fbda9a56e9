from __future__ import annotations

import pytest
import torch

from models.distributed.routing import Route, route


def whole(found: Route, size: int) -> torch.Tensor:
    """The distinct rows as the table numbers them."""
    owner = torch.repeat_interleave(torch.arange(size), torch.tensor(found.counts))
    return found.rows * size + owner


@pytest.mark.parametrize("size", [1, 2, 3, 8])
@pytest.mark.usefixtures("either")
def test_every_row_finds_itself_at_its_owner(size: int) -> None:
    rows = torch.randint(0, 500, (4000,), generator=torch.Generator().manual_seed(size))
    found = route(rows, size)
    distinct = whole(found, size)
    assert torch.equal(distinct[found.inverse], rows)
    assert len(distinct) == len(distinct.unique()) == len(rows.unique())


@pytest.mark.usefixtures("either")
def test_nothing_asked_is_nothing_sent() -> None:
    found = route(torch.empty(0, dtype=torch.int64), 4)
    assert found.counts == [0, 0, 0, 0]
    assert len(found.rows) == len(found.inverse) == 0


@pytest.mark.usefixtures("either")
def test_rows_near_the_largest_keep_apart() -> None:
    rows = torch.tensor([2**31 - 2, 2**31 - 3, 2**31 - 2, 0])
    assert torch.equal(whole(found := route(rows, 3), 3)[found.inverse], rows)
