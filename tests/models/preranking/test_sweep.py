from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from contracts.config.training import PairRates
from contracts.errors import ConfigError, DataError
from contracts.features.feature_spec import PairModel
from models.layers.pair_rate_features import PairRateFeatures
from models.pair_rates.weights import publish, with_pair_rates
from models.preranking import sweep as prerank_sweep
from models.preranking.fscd import Fscd
from models.preranking.sweep import Task, choose, sweep
from tests.models.prerank_market import COSTS, task

NEEDED = {"taste", "kind", "quality"}


def kept_at(job: Task, penalty: float, steps: int = 300) -> set[str]:
    """delta > 0.5 after the warm steps and `steps` at one penalty."""
    network, gates, trainer = prerank_sweep.gated(job)
    trainer.run(steps, penalty)
    return {name for name, stays in zip(network.fields, gates.kept().tolist(), strict=True) if stays}


@pytest.fixture(scope="module")
def points() -> list[prerank_sweep.Point]:
    return sweep(task())


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_noise_and_the_dear_copy_go_and_what_is_needed_stays(seed: int) -> None:
    assert kept_at(task(seed), 5e-3) == NEEDED


@pytest.mark.slow
def test_the_batch_size_does_not_decide() -> None:
    kept = [[kept_at(task(seed, batch_size=size), 5e-3) for size in (256, 4096)] for seed in range(3)]
    assert [small == large for small, large in kept] == [True] * 3


@pytest.mark.slow
def test_a_dearer_penalty_keeps_no_dearer_set() -> None:
    costs = [sum(COSTS[name] for name in kept_at(task(1), penalty)) for penalty in (1e-3, 4e-3, 1.6e-2, 0.5)]
    assert costs == sorted(costs, reverse=True)
    assert costs[-1] < costs[0]


@pytest.mark.slow
def test_the_frontier_starts_with_everything_and_the_choice_keeps_the_recall(points: list[prerank_sweep.Point]) -> None:
    assert points[0].kept == list(points[0].network.fields)
    assert [p.cost for p in points] == sorted((p.cost for p in points), reverse=True)
    job = task()
    chosen = choose(points, job.settings)
    assert chosen.quality.recall >= max(p.quality.recall for p in points) - job.settings.tolerance
    assert not {"noise", "junk", "copy"} & set(chosen.kept)
    assert job.quality(prerank_sweep.finish(job, chosen)[0]).recall > 0.9


def test_a_fresh_network_holds_the_pair_rates_that_its_spec_names(tmp_path: Path) -> None:
    job, pairs = task(), [("taste", "kind")]
    model = PairModel(head="dot", dim=3)
    made = PairRateFeatures(with_pair_rates(job.spec, pairs, model), model)
    scorer: Any = made.scorer
    torch.nn.init.normal_(scorer.vectors)
    spec = publish(made, job.spec, pairs, PairRates(), tmp_path)
    network: Any = replace(job, spec=spec, pair_rates=tmp_path).network(Fscd)
    assert network.fields[-1] == "taste_x_kind_rate"
    assert torch.equal(network.embedding.pair_rates.scorer.vectors, scorer.vectors)
    torch.nn.init.normal_(scorer.vectors)
    publish(made, job.spec, pairs, PairRates(), tmp_path)
    with pytest.raises(DataError, match="run `sluice pretrain` again"):
        replace(job, spec=spec, pair_rates=tmp_path).network(Fscd)


@pytest.mark.slow
def test_a_budget_is_kept(points: list[prerank_sweep.Point]) -> None:
    settings = task(budget=2.5).settings
    assert choose([*points, sweep(task(budget=2.5))[-1]], settings).cost <= 2.5


@pytest.mark.slow
def test_a_budget_below_every_field_is_refused() -> None:
    with pytest.raises(ConfigError, match="cheapest field alone"):
        sweep(task(budget=0.01, penalties=[0.0]))


def test_one_seed_gives_one_result() -> None:
    first, second = (sweep(task(3, penalties=[1e-3], warm_steps=10, sweep_steps=10, tune_steps=5)) for _ in range(2))
    assert [p.kept for p in first] == [p.kept for p in second]
    assert [p.quality.recall for p in first] == [p.quality.recall for p in second]


def test_an_order_is_cut_where_the_budget_ends() -> None:
    def price(names: Sequence[str]) -> float:
        return sum(COSTS[name] for name in names)

    assert prerank_sweep.cut(["copy", "kind", "noise", "taste"], price, 1.5) == ["kind", "noise"]
    assert prerank_sweep.cut(["copy"], price, 1.5) == []
