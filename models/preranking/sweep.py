"""The frontier of quality against cost: one path of gates through rising penalties, a fine-tuned network per field set.

The path starts from a network that has learned behind resting gates, and so to do without any field; each penalty
goes on from where the one before ended, so that fields leave in the order of what they are worth per unit of cost. At
each stop the fields with delta > 0.5 are kept, the others become constants, and a copy of the network is fine-tuned
without gates. It is evaluated on requests of the validation window.

    cost       c of a field (contracts/features/field_costs.py; the paper's c); of a set of fields, the sum
    price      what `prerank.budget` limits: by the cost file the microseconds per 1,000 candidates of the stage with
               these fields alone; without one, the cost
    penalty    nats per sample that all fields together are charged (`prerank.penalties`)
    reg_scale  nats per unit of cost = penalty / cost of all fields; it multiplies sum_j c_j delta_j in the loss
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch

from contracts.bundle.candidate_lists import CandidateLists
from contracts.config.stages import Prerank
from contracts.errors import ConfigError
from contracts.features.feature_spec import FeatureSpec
from contracts.features.field_costs import MeasuredCosts
from models.pair_rates import weights as pair_weights
from models.preranking.candidate_batches import score
from models.preranking.concrete_gates import ConcreteGates
from models.preranking.fscd import Fscd
from models.preranking.fscd_training import Sources, Trainer, prior
from models.preranking.quality import Quality, evaluate

OnStep = Callable[[str, int, int], None]
Kind = TypeVar("Kind", bound=Fscd)


@dataclass(frozen=True, kw_only=True)
class Task:
    """What one sweep is about: `evaluated` are the requests that the points are compared on, `pair_rates` the folder of
    the pre-trained pairs that the spec may name."""

    spec: FeatureSpec
    sources: Sources
    evaluated: CandidateLists
    settings: Prerank
    costs: Mapping[str, float]
    measured: MeasuredCosts | None
    auction: bool
    seed: int
    progress: OnStep
    pair_rates: Path | None = None

    def network(self, kind: type[Kind]) -> Kind:
        """At the start of its training."""
        torch.manual_seed(self.seed)
        made = kind(self.spec, self.settings.embedding_dim, self.settings.hidden)
        if self.pair_rates and self.spec.pair_model and made.embedding.pair_rates:
            pair_weights.load_pair_rates(made.embedding.pair_rates, self.spec.pair_model, self.pair_rates)
        prior(made, self.sources.lists)
        return made

    def reg_scale(self, penalty: float) -> float:
        """The same penalties then fit costs in any unit."""
        return penalty / max(sum(self.costs.values()), 1e-12)

    def price(self, kept: Collection[str]) -> float:
        """Of a pre-ranker with these fields alone."""
        if self.measured is not None:
            return self.measured.per_1000(kept, self.settings.item_side)
        return sum(self.costs[name] for name in kept)

    def quality(self, network: Fscd) -> Quality:
        """On the requests that points are compared on."""
        scores = score(network, self.sources.items, self.evaluated)
        return evaluate(scores, self.sources.items, self.evaluated, recall_at=self.settings.recall_at,
                        keep=self.settings.keep, auction=self.auction)


@dataclass(frozen=True)
class Point:
    """`reg_scale` None: every field; `delta` per field as the gates left it."""

    reg_scale: float | None
    delta: dict[str, float]
    network: Fscd
    cost: float
    price: float
    quality: Quality

    @property
    def kept(self) -> list[str]:
        """Fields, in the order of the spec."""
        return self.network.kept_fields


def gated(task: Task) -> tuple[Fscd, ConcreteGates, Trainer]:
    """A network and gates at the start of the path."""
    network = task.network(Fscd)
    gates = ConcreteGates(torch.tensor([task.costs[name] for name in network.fields]))
    trainer = Trainer(network, gates, task.sources, task.settings, task.seed, task.spec.positions)
    trainer.run(task.settings.warm_steps)
    return network, gates, trainer


def sweep(task: Task) -> list[Point]:
    """Points of falling cost: all fields, then one per penalty that changed the kept set."""
    network, gates, trainer = gated(task)
    points = [tuned(task, network, network.fields, None, gates)]
    for number, penalty in enumerate(task.settings.penalties):
        task.progress("sweep", number, len(task.settings.penalties))
        reg_scale = task.reg_scale(penalty)
        trainer.run(task.settings.sweep_steps, reg_scale)
        kept = [name for name, stays in zip(network.fields, gates.kept().tolist(), strict=True) if stays]
        if kept and kept not in [point.kept for point in points]:
            points.append(tuned(task, network, kept, reg_scale, gates))
    if task.settings.budget is not None and not any(p.price <= task.settings.budget for p in points):
        points.append(tuned(task, network, within_budget(task, network, gates),
                            task.reg_scale(task.settings.penalties[-1]), gates))
    return points


def within_budget(task: Task, network: Fscd, gates: ConcreteGates) -> list[str]:
    """Fields by falling delta as long as they fit the budget. Raises ConfigError when none does."""
    limit = task.settings.budget or 0.0
    kept = cut([network.fields[place] for place in gates.delta.argsort(descending=True).tolist()], task.price, limit)
    if not kept:
        least = min(task.price([name]) for name in network.fields)
        raise ConfigError(f"prerank.budget {limit:g} is below {least:g}, the price of the cheapest field alone; raise "
                          "it, or set prerank.kind = 'dot_product'")
    return kept


def cut(order: Sequence[str], price: Callable[[Sequence[str]], float], limit: float) -> list[str]:
    """The first fields of the order that fit; one that does not fit is passed over."""
    kept: list[str] = []
    for name in order:
        kept = [*kept, name] if price([*kept, name]) <= limit + 1e-9 else kept
    return kept


def tuned(
    task: Task, start: Fscd, kept: Sequence[str], reg_scale: float | None, gates: ConcreteGates | None
) -> Point:
    """A copy of `start` with these fields alone, fine-tuned."""
    network = copy.deepcopy(start)
    network.keep(kept)
    Trainer(network, None, task.sources, task.settings, task.seed, task.spec.positions).run(
        task.settings.tune_steps, decay=True)
    delta = dict(zip(network.fields, gates.delta.tolist(), strict=True)) if gates else {}
    cost = sum(task.costs[name] for name in network.kept_fields)
    return Point(reg_scale, delta, network, cost, task.price(network.kept_fields), task.quality(network))


def choose(points: Sequence[Point], settings: Prerank) -> Point:
    """With a budget the best recall within it; without, the cheapest that lacks at most `tolerance` of the best."""
    affordable = [p for p in points if settings.budget is None or p.price <= settings.budget]
    best = max(point.quality.recall for point in affordable)
    slack = settings.tolerance if settings.budget is None else 0.0
    return min((p for p in affordable if p.quality.recall >= best - slack), key=lambda p: (p.price, p.cost))


def finish(task: Task, point: Point) -> tuple[Fscd, list[float]]:
    """The chosen point's network, trained to the end, and the bias of positions that it learned beside."""
    network = copy.deepcopy(point.network)
    trainer = Trainer(network, None, task.sources, task.settings, task.seed + 1, task.spec.positions)
    trainer.run(task.settings.final_steps, decay=True)
    return network, trainer.bias.values().tolist()


def first(lists: CandidateLists, count: int) -> CandidateLists:
    """The first `count` requests that were drawn uniformly."""
    rows = np.flatnonzero(lists.uniform)[:count]
    return CandidateLists(**{field.name: getattr(lists, field.name)[rows] for field in fields(lists)})
