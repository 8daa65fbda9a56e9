from __future__ import annotations

import pytest
import torch

from models.preranking.concrete_gates import ConcreteGates


@pytest.mark.parametrize("delta", [0.01, 0.1, 0.5, 0.8, 0.99])
def test_the_mean_of_a_gate_is_its_keep_probability(delta: float) -> None:
    gates = ConcreteGates(torch.ones(1))
    with torch.no_grad():
        gates.logits.fill_(torch.logit(torch.tensor(delta)))
    drawn = gates.sample(400_000, torch.Generator().manual_seed(1)).detach()
    assert float(drawn.mean()) == pytest.approx(delta, abs=0.01)
    assert drawn.min() >= 0.0
    assert drawn.max() <= 1.0


def test_alpha_is_the_cost_where_the_paper_s_logarithms_overflow() -> None:
    costs = torch.tensor([0.0, 1e-3, 1.0, 10.0, 40.0, 1e4])
    gates = ConcreteGates(costs)
    assert torch.equal(gates.alpha, costs)
    theta = 1 - torch.sigmoid(costs[:4].double())
    assert torch.allclose((1 - theta).log() - theta.log(), gates.alpha[:4].double(), atol=1e-4)


def test_gates_start_undecided_and_a_free_field_costs_nothing() -> None:
    gates = ConcreteGates(torch.tensor([0.0, 2.0]))
    assert gates.delta.tolist() == [0.5, 0.5]
    assert gates.penalty().item() == pytest.approx(1.0)
    gates.penalty().backward()
    assert gates.logits.grad is not None
    assert gates.logits.grad.tolist() == pytest.approx([0.0, 0.5])


def test_gradients_reach_the_logits_through_a_sample() -> None:
    gates = ConcreteGates(torch.ones(3))
    gates.sample(1000, torch.Generator().manual_seed(0)).sum().backward()
    assert gates.logits.grad is not None
    assert (gates.logits.grad > 0).all()
