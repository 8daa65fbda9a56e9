from __future__ import annotations

import pytest
import torch

from models.compiled import kernels
from models.optimisation.row_adam import RowAdam, padded_rows, row_gradient, summed_rows


@pytest.fixture(params=["compiled", "plain torch"], autouse=True)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "plain torch":
        monkeypatch.setattr(kernels, "library", lambda: None)
    elif kernels.library() is None:
        pytest.skip("no C++ compiler on this machine")


def test_each_row_moves_as_torch_adam_moves_it_alone() -> None:
    """A row seen in k batches equals an own parameter that torch's Adam stepped k times."""
    weight = torch.nn.Parameter(torch.randn(5, 3))
    alone = [torch.nn.Parameter(row.clone()) for row in weight.detach()]
    reference = [torch.optim.Adam([row], lr=0.1) for row in alone]
    adam = RowAdam(weight, 0.1, 0.0)
    for step in range(6):
        rows = torch.tensor([0, 1 + step % 2, 3])
        gradient = torch.randn(3, 3)
        adam.step(rows, gradient)
        for row, value in zip(rows.tolist(), gradient, strict=True):
            alone[row].grad = value
            reference[row].step()
    torch.testing.assert_close(weight.detach(), torch.stack([row.detach() for row in alone]))


def test_one_second_moment_a_row_is_the_mean_square_of_its_gradient() -> None:
    """Where all numbers of a gradient are of one size, both ways are one."""
    start, signs = torch.randn(4, 8), torch.randn(4, 8).sign()
    by_row, by_number = (torch.nn.Parameter(start.clone()) for _ in range(2))
    adams = [RowAdam(by_row, 0.1, 0.01, by_row=True), RowAdam(by_number, 0.1, 0.01)]
    rows = torch.tensor([0, 3])
    for size in (1.0, 0.3, 2.0):
        for adam in adams:
            adam.step(rows, size * signs[rows])
    assert adams[0].square.shape == (4, 1)
    torch.testing.assert_close(by_row, by_number)
    uneven = torch.randn(2, 8)
    before = adams[0].square[rows].clone()
    adams[0].step(rows, uneven)
    torch.testing.assert_close(adams[0].square[rows], 0.999 * before + 0.001 * uneven.square().mean(1, keepdim=True))


def test_decay_falls_on_seen_rows_alone() -> None:
    weight = torch.nn.Parameter(torch.ones(2, 1))
    RowAdam(weight, 0.1, 0.5).step(torch.tensor([1]), torch.zeros(1, 1))
    torch.testing.assert_close(weight.detach(), torch.tensor([[1.0], [0.95]]))


def test_gradients_of_equal_rows_are_summed() -> None:
    rows, values = torch.tensor([[3, 1, 3]]), torch.tensor([[1.0], [2.0], [4.0]])
    gradient = torch.sparse_coo_tensor(rows, values, (5, 1), check_invariants=True)
    place = torch.full((5,), -1, dtype=torch.int32)
    for _ in range(2):
        rows, values = row_gradient(gradient, place)
        assert dict(zip(rows.tolist(), values.flatten().tolist(), strict=True)) == {1: 2.0, 3: 5.0}


def test_rows_of_a_fixed_number_move_a_table_as_distinct_ones_do() -> None:
    """What a GPU does: as many rows as came in, what is left over on the padding, which stays where it is."""
    rows, values = torch.tensor([3, 0, 1, 3, 0]), torch.randn(5, 2)
    start = torch.randn(5, 2)
    start[0] = 0.0
    tables = [torch.nn.Parameter(start.clone()) for _ in range(2)]
    found = padded_rows(rows, values)
    assert len(found.rows) == 5
    for table, gradient in zip(tables, (found, summed_rows(rows[[0, 2, 3]], values[[0, 2, 3]])), strict=True):
        RowAdam(table, 0.1, 0.01).step(*gradient)
    torch.testing.assert_close(*tables)
    assert not tables[0][0].any()


def test_a_penalty_is_a_gradient_towards_zero_of_the_row_itself() -> None:
    start, gradient = torch.randn(3, 2), torch.randn(2, 2)
    with_penalty, by_hand = (torch.nn.Parameter(start.clone()) for _ in range(2))
    penalty, rows = torch.tensor([1.0, 2.0, 5.0]), torch.tensor([0, 2])
    RowAdam(with_penalty, 0.1, 0.0, penalty).step(rows, gradient)
    RowAdam(by_hand, 0.1, 0.0).step(rows, gradient + penalty[rows][:, None] * start[rows])
    torch.testing.assert_close(with_penalty, by_hand)


def test_a_pace_is_the_rows_own_share_of_the_rate() -> None:
    start, gradient = torch.randn(3, 2), torch.randn(3, 2)
    paced, plain = (torch.nn.Parameter(start.clone()) for _ in range(2))
    RowAdam(paced, 0.1, 0.1, pace=torch.tensor([1.0, 2.0, 5.0])).step(torch.arange(3), gradient)
    RowAdam(plain, 0.1, 0.1).step(torch.arange(3), gradient)
    torch.testing.assert_close(paced - start, (plain - start) * torch.tensor([[1.0], [2.0], [5.0]]))
