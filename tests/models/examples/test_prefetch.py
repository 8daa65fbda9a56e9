from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from models.examples.prefetch import arriving, made_ahead


def test_everything_comes_in_its_order_by_another_thread() -> None:
    makers = set()

    def numbers() -> Iterator[int]:
        for number in range(50):
            makers.add(threading.get_ident())
            yield number

    assert list(made_ahead(numbers(), 3)) == list(range(50))
    assert makers
    assert threading.get_ident() not in makers


def test_no_more_is_made_than_asked_for_and_the_room_ahead() -> None:
    made: list[int] = []
    third = threading.Event()

    def numbers() -> Iterator[int]:
        for number in range(100):
            made.append(number)
            if number == 3:
                third.set()
            yield number

    taken = made_ahead(numbers(), 2)
    assert next(taken) == 0  # 1 and 2 wait, and 3 is made and finds no room
    assert third.wait(10)
    assert made == [0, 1, 2, 3]
    taken.close()  # type: ignore[attr-defined]
    assert made == [0, 1, 2, 3]


def test_what_making_raises_comes_after_what_was_made() -> None:
    def numbers() -> Iterator[int]:
        yield 1
        raise ValueError("a damaged file")

    taken = made_ahead(numbers(), 2)
    assert next(taken) == 1
    with pytest.raises(ValueError, match="a damaged file"):
        next(taken)


def test_who_stops_taking_leaves_no_thread() -> None:
    before = set(threading.enumerate())
    taken = made_ahead(iter(range(1000)), 2)
    assert next(taken) == 0
    taken.close()  # type: ignore[attr-defined]
    assert set(threading.enumerate()) <= before


def test_on_a_cpu_batches_come_as_they_are_read(item_world: Any) -> None:
    batches = list(item_world.train.batches(256))
    assert all(a is b for a, b in zip(arriving(batches, torch.device("cpu")), batches, strict=True))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU")
def test_on_a_gpu_batches_arrive_whole_with_their_clicks(item_world: Any) -> None:
    device = torch.device("cuda")
    batches = list(item_world.train.batches(256))
    for found, wanted in zip(arriving(batches, device), batches, strict=True):
        assert found.label.is_cuda
        assert torch.equal(found.clicks().cpu(), wanted.clicks())
        assert torch.equal(found.request.ids.cpu(), wanted.request.ids)
