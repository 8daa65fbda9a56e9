"""In a group of one process; two are in test_sharded_table.py."""

from __future__ import annotations

import pytest
import torch

from models.distributed import gradient_buckets
from models.distributed.gradient_buckets import GradientBuckets
from models.distributed.world import World


@pytest.fixture
def layers(monkeypatch: pytest.MonkeyPatch) -> list[torch.nn.Parameter]:
    """Three numbers a bucket at least."""
    monkeypatch.setattr(gradient_buckets, "BUCKET", 3)
    return [torch.nn.Parameter(torch.ones(size)) for size in (4, 2, 2, 3)]


@pytest.mark.usefixtures("group_of_one")
def test_buckets_leave_while_the_pass_goes_on_last_parameters_first(layers: list[torch.nn.Parameter]) -> None:
    buckets = GradientBuckets(layers, World(0, 2))
    left: list[int] = []
    layers[0].register_hook(lambda _: left.append(len(buckets.sent)))
    first, second, third, last = layers
    hidden = first.sum() * second.sum()
    (hidden * third.sum() * last.sum()).backward()
    assert left == [2]
    assert len(buckets.sent) == 2, "the last waits for what else is to be added up"
    buckets.send_rest(torch.tensor([7.0, 8.0]))
    assert buckets.said() == [7.0, 8.0]
    buckets.take(0.5)
    assert first.grad is not None
    assert first.grad.tolist() == [0.5 * 2 * 2 * 3] * 4


@pytest.mark.usefixtures("group_of_one")
def test_what_no_gradient_came_to_leaves_as_zeros(layers: list[torch.nn.Parameter]) -> None:
    """One that nobody has a gradient of keeps none."""
    buckets = GradientBuckets(layers, World(0, 2))
    layers[0].sum().backward()
    assert len(buckets.sent) == 0, "those before it have not left"
    buckets.send_rest(torch.zeros(1))
    buckets.said()
    buckets.take(1.0)
    assert layers[0].grad is not None
    assert layers[0].grad.tolist() == [1.0] * 4
    assert [layer.grad for layer in layers[1:]] == [None] * 3


@pytest.mark.usefixtures("group_of_one")
def test_after_the_run_a_pass_sends_nothing(layers: list[torch.nn.Parameter]) -> None:
    buckets = GradientBuckets(layers, World(0, 2))
    buckets.close()
    sum(layer.sum() for layer in layers).backward()  # type: ignore[union-attr]
    assert buckets.sent == []
