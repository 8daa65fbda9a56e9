from __future__ import annotations

import pytest
import torch

from models.preranking.concrete_gates import ConcreteGates
from models.preranking.fscd import Fscd
from models.preranking.fscd_training import Trainer, prior
from tests.models.prerank_market import COSTS, task


def trained(steps: int, gates: bool = False, reg_scale: float | None = None, **changes: object) -> tuple[Fscd, Trainer]:
    job = task(**changes)  # type: ignore[arg-type]
    torch.manual_seed(job.seed)
    network = Fscd(job.spec, 4, (32,))
    prior(network, job.sources.lists)
    made = ConcreteGates(torch.tensor([COSTS[name] for name in network.fields])) if gates else None
    trainer = Trainer(network, made, job.sources, job.settings, job.seed)
    trainer.run(steps, reg_scale)
    return network, trainer


@pytest.mark.slow
def test_the_teacher_is_learned() -> None:
    network, _ = trained(400)
    assert task().quality(network).recall > 0.9


def test_one_seed_gives_one_network_and_another_another() -> None:
    first, second, other = (trained(5, seed=seed)[0].state_dict() for seed in (3, 3, 4))
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert not torch.equal(first["mlp.first.candidate"], other["mlp.first.candidate"])


def test_without_a_penalty_gates_stay_and_with_one_they_move() -> None:
    for reg_scale, moved in ((None, False), (0.0, True)):
        _, trainer = trained(3, gates=True, reg_scale=reg_scale)
        assert isinstance(trainer.gates, ConcreteGates)
        assert bool(trainer.gates.logits.abs().sum() > 0) == moved


def test_a_large_penalty_closes_every_gate_at_the_same_pace_for_any_batch_size() -> None:
    for size in (64, 1024):
        _, trainer = trained(80, gates=True, reg_scale=100.0, batch_size=size)
        assert isinstance(trainer.gates, ConcreteGates)
        assert (trainer.gates.delta < 0.06).all()


def test_training_leaves_the_constants_of_dropped_fields_alone() -> None:
    network, trainer = trained(2)
    network.keep(["taste", "kind", "quality"])
    before = network.candidate_mean.clone()
    trainer.run(5)
    for field, same in (("junk", True), ("quality", False)):
        columns = network.candidate_columns == network.fields.index(field)
        assert torch.equal(network.candidate_mean[columns], before[columns]) == same
