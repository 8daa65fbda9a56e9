from __future__ import annotations

import pytest
import torch

from models.preranking import baselines as prerank_baselines
from models.preranking import sweep as prerank_sweep
from models.preranking.baselines import SmoothGates
from tests.models.prerank_market import COSTS, task


@pytest.mark.slow
def test_baselines_put_what_is_needed_before_noise() -> None:
    job = task(final_steps=400)
    network, gates, _ = prerank_sweep.gated(job)
    trained, _ = prerank_sweep.finish(job, prerank_sweep.tuned(job, network, network.fields, None, gates))
    for name, order in prerank_baselines.orders(job, trained).items():
        assert set(order) == set(COSTS), name
        if name in ("permutation", "shark"):
            assert order.index("quality") < order.index("junk"), name


def test_smooth_gates_reach_zero_and_one_as_epsilon_falls() -> None:
    gates = SmoothGates(torch.tensor([1.0, 2.0]))
    with torch.no_grad():
        gates.x.copy_(torch.tensor([0.0, 1.0]))
    gates.epsilon = 1e-6
    assert gates.sample(3, torch.Generator()).detach().allclose(torch.tensor([0.0, 1.0]).expand(3, 2), atol=1e-5)
    assert gates.penalty().item() == 2.0
