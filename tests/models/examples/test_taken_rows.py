"""Rows of several tensors, compiled and by torch."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from models.compiled import kernels
from models.examples.taken_rows import taken_rows


def of_every_kind(size: int) -> list[torch.Tensor]:
    torch.manual_seed(size)
    return [torch.randint(0, 99, (size, 5), dtype=torch.int32), torch.randn(size), torch.arange(size),
            torch.randn(size, 0), torch.randn(size, 40), torch.rand(size) > 0.5, torch.randn(size, 3, 2)]


@given(size=st.integers(1, 50), data=st.data())
def test_they_are_those_that_torch_selects(size: int, data: Any) -> None:
    rows = torch.tensor(data.draw(st.lists(st.integers(0, size - 1), max_size=80)), dtype=torch.int64)
    tensors = of_every_kind(size)
    found = taken_rows(tensors, rows)
    for tensor, taken in zip(tensors, found, strict=True):
        wanted = tensor.index_select(0, rows)
        assert (taken.dtype, taken.shape) == (wanted.dtype, wanted.shape)
        assert torch.equal(taken, wanted)


def test_what_lies_apart_is_taken_too() -> None:
    wide, rows = torch.arange(24).view(6, 4), torch.tensor([5, 0, 5])
    (found,) = taken_rows([wide[:, 1:3]], rows)
    assert found.tolist() == [[21, 22], [1, 2], [21, 22]]


def test_what_compiled_code_does_not_read_is_left_to_torch() -> None:
    leaf = torch.arange(4.0, requires_grad=True)
    (found,) = taken_rows([leaf], torch.tensor([2]))
    assert found.requires_grad
    assert taken_rows([], torch.tensor([0])) == []
    with pytest.raises(IndexError):
        taken_rows([torch.arange(4)], torch.tensor([[0, 1]]))


def test_many_rows_by_any_number_of_threads() -> None:
    tensors, rows, before = of_every_kind(3000), torch.randperm(3000), torch.get_num_threads()
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            assert all(map(torch.equal, taken_rows(tensors, rows), (one[rows] for one in tensors)))
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("wrong", [-1, 4])
@pytest.mark.parametrize("way", ["compiled", "plain torch"])
def test_a_row_that_is_none_is_an_error(wrong: int, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if way == "plain torch":
        monkeypatch.setattr(kernels, "library", lambda: None)
    elif kernels.library() is None:
        pytest.skip("no C++ compiler on this machine")
    with pytest.raises(IndexError):
        taken_rows([torch.arange(4), torch.ones(4, 2)], torch.tensor([0, wrong]))
