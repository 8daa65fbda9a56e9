from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from models.layers import linear as linear_lib
from models.sequences import catalogue_softmax as lib
from models.sequences.catalogue_softmax import catalogue_softmax

ITEMS, WIDTH = 37, 6


def problem(rows: int, spread: float = 1.0) -> tuple[Tensor, Tensor, Tensor]:
    torch.manual_seed(0)
    users, items = spread * torch.randn(rows, WIDTH), spread * torch.randn(ITEMS, WIDTH)
    return users.requires_grad_(), items.requires_grad_(), torch.randint(ITEMS, (rows,))


@pytest.mark.parametrize("at_once", [1, 4, 29, 1000])
@pytest.mark.parametrize("spread", [1.0, 20.0])  # of 20: scores of some thousands
def test_loss_and_gradients_are_those_of_cross_entropy(monkeypatch, at_once, spread):
    monkeypatch.setattr(lib, "HELD", at_once * ITEMS)
    monkeypatch.setattr(lib, "LEAST", 1)
    users, items, target = problem(29, spread)
    found, plain = catalogue_softmax(users, items, target), F.cross_entropy(users @ items.T, target)
    torch.testing.assert_close(found, plain)
    ours, theirs = (torch.autograd.grad(3 * loss, (users, items)) for loss in (found, plain))
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


def test_a_catalogue_larger_than_what_is_held_is_taken_a_few_rows_at_a_time(monkeypatch):
    monkeypatch.setattr(lib, "HELD", ITEMS // 2)
    monkeypatch.setattr(lib, "LEAST", 2)
    users, items, target = problem(3)
    torch.testing.assert_close(catalogue_softmax(users, items, target), F.cross_entropy(users @ items.T, target))


def test_users_and_items_are_left_as_they_were():
    users, items, target = problem(5)
    before = users.detach().clone(), items.detach().clone()
    catalogue_softmax(users, items, target).backward()
    assert torch.equal(users, before[0])
    assert torch.equal(items, before[1])


def test_products_of_whole_pieces_are_right_too():
    """Large enough for the operator of models/layers/linear.py."""
    torch.manual_seed(1)
    rows, count, width = 1100, 2000, 16
    users, items = torch.randn(rows, width, requires_grad=True), torch.randn(count, width, requires_grad=True)
    assert rows > lib.HELD // count > 0
    assert lib.HELD // count * count * width >= linear_lib.LARGE
    target = torch.randint(count, (rows,))
    found, plain = catalogue_softmax(users, items, target), F.cross_entropy(users @ items.T, target)
    torch.testing.assert_close(found, plain)
    ours, theirs = (torch.autograd.grad(loss, (users, items)) for loss in (found, plain))
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-6)
