"""Threads stand for processes: they open each other's boxes and pipes alike. Processes are in test_exchange.py."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from models.distributed.shared_memory import FIRST_SIZE, SharedMemory, connected
from models.distributed.world import World

Action = Callable[[SharedMemory | None, int], Any]


def together(size: int, action: Action) -> list[Any]:
    """What each of so many gets for its rank."""
    said: list[Any] = [None] * size
    barrier = threading.Barrier(size, timeout=20)

    def one(rank: int) -> Any:
        def gather(mine: Any) -> list[Any]:
            said[rank] = mine
            barrier.wait()
            found = [*said]
            barrier.wait()
            return found

        exchange = connected(World(rank, size), gather)
        try:
            return action(exchange, rank)
        finally:
            if exchange is not None:
                exchange.close()

    with ThreadPoolExecutor(size) as threads:
        return [*threads.map(one, range(size))]


def counts(size: int, rank: int, turn: int) -> list[int]:
    """Some of them none."""
    return [(3 * rank + receiver + turn) % 4 for receiver in range(size)]


@pytest.mark.parametrize("size", [2, 3, 5])
def test_everybody_gets_what_each_has_for_it_in_the_order_of_the_senders(size: int) -> None:
    def run(exchange: SharedMemory | None, rank: int) -> list[tuple[Tensor, list[int]]]:
        assert exchange is not None
        found = []
        for turn, kind in enumerate((torch.int32, torch.float32, torch.int64, torch.float32)):
            sent = counts(size, rank, turn)
            rows = [[rank, receiver, turn] for receiver, count in enumerate(sent) for _ in range(count)]
            found.append(exchange.dealt(torch.tensor(rows, dtype=kind).view(-1, 3), sent))
        return found

    for rank, found in enumerate(together(size, run)):
        for turn, (values, came) in enumerate(found):
            assert came == [counts(size, sender, turn)[rank] for sender in range(size)]
            assert values.tolist() == [[sender, rank, turn] for sender, count in enumerate(came) for _ in range(count)]


def test_boxes_grow_with_what_is_in_them() -> None:
    large = FIRST_SIZE

    def run(exchange: SharedMemory | None, rank: int) -> list[list[int]]:
        assert exchange is not None
        sums = []
        for rows in (1, large, 3, 5 * large):
            values, _ = exchange.dealt(torch.full((2 * rows,), rank + 1), [rows, rows])
            sums.append([len(values), int(values.sum())])
        return sums

    expected = [[2 * rows, 3 * rows] for rows in (1, large, 3, 5 * large)]
    assert together(2, run) == [expected, expected]


@pytest.mark.parametrize("size", [2, 3, 4])
@pytest.mark.parametrize("count", [1, 3, 1000])
def test_sums_are_the_same_bits_in_all(size: int, count: int) -> None:
    numbers = torch.randn(size, count, generator=torch.Generator().manual_seed(0))

    def run(exchange: SharedMemory | None, rank: int) -> list[Tensor]:
        assert exchange is not None
        half = count // 2
        return [exchange.add([scale * numbers[rank, :half], scale * numbers[rank, half:]])[0] for scale in (1.0, 2.0)]

    (first, twice), *others = together(size, run)
    torch.testing.assert_close(first, numbers.sum(0))
    torch.testing.assert_close(twice, 2 * numbers.sum(0))
    assert all(torch.equal(first, found) for found, _ in others)


def test_nobody_waits_for_one_that_has_ended() -> None:
    def run(exchange: SharedMemory | None, rank: int) -> str:
        assert exchange is not None
        if rank == 1:
            return "ended"
        with pytest.raises(RuntimeError, match="a process of this run has died"):
            exchange.add([torch.ones(1)])
        return "heard"

    assert together(3, run) == ["heard", "ended", "heard"]


def descriptors() -> set[tuple[str, str]]:
    """Number and file of every open descriptor of this process."""
    return {(each.name, os.path.realpath(each)) for each in Path("/proc/self/fd").glob("*")}


def test_where_one_may_not_open_the_others_memory_nobody_uses_it(monkeypatch: pytest.MonkeyPatch) -> None:
    before, opened, usual = descriptors(), [], os.open

    def refusing(path: Any, *how: Any) -> int:
        opened.append(path)
        if len(opened) == 4:
            raise PermissionError
        return usual(path, *how)

    monkeypatch.setattr(os, "open", refusing)
    assert together(2, lambda exchange, _: exchange) == [None, None]
    assert descriptors() <= before, "all that was opened is closed"
