from __future__ import annotations

import pytest
import torch

from models.distributed.routing import Route, route
from models.layers import kernels


@pytest.fixture(params=["compiled", "torch"])
def plain(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "torch":
        monkeypatch.setattr(kernels, "library", lambda: None)
    elif kernels.library() is None:
        pytest.skip("no compiler")
    return str(request.param)


def whole(found: Route, size: int) -> torch.Tensor:
    """The distinct rows as the table numbers them."""
    owner = torch.repeat_interleave(torch.arange(size), torch.tensor(found.counts))
    return found.rows * size + owner


@pytest.mark.parametrize("size", [1, 2, 3, 8])
def test_every_row_finds_itself_at_its_owner(plain: str, size: int) -> None:
    rows = torch.randint(0, 500, (4000,), generator=torch.Generator().manual_seed(size))
    found = route(rows, size)
    distinct = whole(found, size)
    assert torch.equal(distinct[found.inverse], rows)
    assert len(distinct) == len(distinct.unique()) == len(rows.unique())


def test_nothing_asked_is_nothing_sent(plain: str) -> None:
    found = route(torch.empty(0, dtype=torch.int64), 4)
    assert found.counts == [0, 0, 0, 0]
    assert len(found.rows) == len(found.inverse) == 0


def test_rows_near_the_largest_keep_apart(plain: str) -> None:
    rows = torch.tensor([2**31 - 2, 2**31 - 3, 2**31 - 2, 0])
    assert torch.equal(whole(found := route(rows, 3), 3)[found.inverse], rows)
