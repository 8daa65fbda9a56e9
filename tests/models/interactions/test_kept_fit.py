"""Fits that are stopped again and again end in the bits of one that nobody disturbed."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from contracts.errors import SluiceError
from models.distributed.run_checkpoint import RunCheckpoint
from models.distributed.world import World
from models.interactions.kept_fit import FitProgress, KeptFit
from models.interactions.splits import Split
from models.interactions.validation import BestEpoch
from models.retrieval.light_gcn import LightGcn, LightGcnSettings
from models.sequences import length_buckets
from models.sequences.encoder import EncoderSettings
from models.sequences.sequence_retriever import SequenceRetriever, SequenceSettings
from tests.models.interaction_world import ring_split

SEQUENCES = SequenceSettings(encoder=EncoderSettings(width=8, length=10, dropout=0.3), epochs=5, batch=16, negatives=8,
                             validate_every=2, unknown_items=0.1)
GRAPH = LightGcnSettings(width=8, epochs=5, batch=16, validate_every=2)
STOPS = (1, 4, 9)  # batches of each start


class Stopped(RunCheckpoint):
    """Told to end after so many batches; as the kernel would, by a signal."""

    def __init__(self, folder: Path, batches: int) -> None:
        super().__init__(folder, 3600.0, {"run": "1"}, resume=True)
        self.left = batches

    def wish(self, world: World) -> float:
        self.left -= 1
        if not self.left:
            os.kill(os.getpid(), signal.SIGTERM)
        return super().wish(world)


def sequences() -> SequenceRetriever:
    return SequenceRetriever(SEQUENCES, 3)


def graph() -> LightGcn:
    return LightGcn(GRAPH, 3)


def updates(model: SequenceRetriever | LightGcn, split: Split) -> int:
    """Of a fit from its start to its end."""
    if isinstance(model, LightGcn):
        return GRAPH.epochs * -(-len(split.train.items) // GRAPH.batch)
    chance = np.random.default_rng(0)
    return SEQUENCES.epochs * len(list(length_buckets.batches(split.train, 10, SEQUENCES.batch, chance)))


@pytest.mark.parametrize("make", [sequences, graph])
def test_a_fit_goes_on_where_it_was_stopped(make: Callable[[], SequenceRetriever | LightGcn], tmp_path: Path) -> None:
    split, whole = ring_split(40), make()
    undisturbed = whole.fit(split)
    for stop in STOPS:
        model = make()
        model.kept = Stopped(tmp_path / "kept", stop)
        with pytest.raises(SluiceError, match="was told to stop"):
            model.fit(split)
    model = make()
    model.kept = Stopped(tmp_path / "kept", 0)
    fitted = model.fit(split)
    asked = split.test.asked
    assert torch.equal(model.scores(asked, split.test.history), whole.scores(asked, split.test.history))
    assert fitted.rounds == undisturbed.rounds
    assert -model.kept.left == updates(model, split) - sum(STOPS)


def small(kept: RunCheckpoint | None, best: BestEpoch[dict[str, torch.Tensor]]) -> tuple[nn.Linear, KeptFit]:
    module = nn.Linear(2, 1)
    return module, KeptFit(kept, {"module": module}, torch.optim.Adam(module.parameters()), best)


def test_all_comes_back_that_was_kept(tmp_path: Path) -> None:
    best: BestEpoch[dict[str, torch.Tensor]] = BestEpoch(3)
    first, run = small(RunCheckpoint(tmp_path / "kept", 0.0, {"run": "1"}), best)
    best.goes_on(2, 0.5, lambda: {"v": torch.arange(3.0)})
    run.begin_epoch(FitProgress())
    order = torch.randperm(9)
    first(torch.ones(1, 2)).sum().backward()
    run.adam.step()
    torch.rand(1)
    with run:
        run.keep(FitProgress(epoch=3, batch=4, total=1.5, rows=8, updates=7))
    drawn = torch.rand(2)

    again: BestEpoch[dict[str, torch.Tensor]] = BestEpoch(3)
    second, run_again = small(RunCheckpoint(tmp_path / "kept", 9.0, {"run": "1"}, resume=True), again)
    now = run_again.take_up()
    assert (now.epoch, now.batch, now.total, now.rows, now.updates) == (3, 4, 1.5, 8, 7)
    run_again.begin_epoch(now)
    assert torch.equal(torch.randperm(9), order)
    run_again.go_on(now)
    assert torch.equal(torch.rand(2), drawn)
    assert torch.equal(second.weight, first.weight)
    assert (again.epoch, again.figure) == (2, 0.5)
    assert torch.equal(again.state["v"], torch.arange(3.0))
    for number, moments in run.adam.state_dict()["state"].items():
        restored = run_again.adam.state_dict()["state"][number]
        assert all(torch.equal(moments[name], restored[name]) for name in moments)


def test_without_a_checkpoint_nothing_is_kept() -> None:
    _, run = small(None, BestEpoch(3))
    with run:
        assert run.take_up() == FitProgress()
        run.begin_epoch(FitProgress(batch=3))
        run.go_on(FitProgress(batch=3))
        run.keep(FitProgress())
