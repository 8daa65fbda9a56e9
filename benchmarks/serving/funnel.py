"""The funnel in process, stage by stage, beside a floor measured in the same run.

    sluice bench funnel [--items 100000] [--requests 500] [--ranker dnn]

The world is synthetic (random weights and features through the real classes): 12 user, 2 context, 22 item and 4 cross
fields, 1000 retrieved, 200 ranked, 10 shown, with an auction. The floor gives the same answers in straight lines on
the same libraries, tables and weights (benchmarks/bare/bare_cascade.py). Ratios to it are medians over rounds, each
of which asks the funnel and the floor in turn, in CPU time of the one thread that works, so that a neighbour on the
machine moves neither much; least and most tell how far they may be trusted. The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

import numpy as np
import torch
from threadpoolctl import threadpool_limits

from benchmarks.bare.bare_cascade import BareCascade
from contracts.bundle.bundle import SCHEMA_VERSION, Manifest
from contracts.config.stages import Prerank, Rerank, Retrieve, Serve
from contracts.config.training import Train
from contracts.features.encoding import Encoded, Encoder
from contracts.features.feature_spec import FIRST_ID, FeatureField, FeatureSpec
from contracts.features.vocabulary import Vocabulary
from models.evaluation import calibration
from models.networks import registry
from models.networks.tower_pre_ranker import PreRanker
from models.networks.two_tower import TwoTower
from serving.assembly.item_vectors import rank_part
from serving.bundle import item_index
from serving.bundle.bundle_settings import BundleSettings
from serving.bundle.feature_store import FeatureStore
from serving.bundle.loaded_bundle import LoadedBundle, RankTable
from serving.request.deadline import Deadline
from serving.request.query import RankQuery
from serving.request.request_features import block
from serving.stages.funnel import Funnel

VALUES, BUCKETS, RECENT = 1000, 10_000, 20
USERS = 2000
ROUNDS = 15
COUNTERS = ("user_count0", "user_count1", "user_count2")
RATES = tuple(f"item_rate{number}" for number in range(6))


def spec(counters: Sequence[str] = COUNTERS, rates: Sequence[str] = RATES) -> FeatureSpec:
    def categorical(name: str, side: str) -> FeatureField:
        return FeatureField.model_validate(
            {"name": name, "kind": "categorical", "side": side, "vocabulary": "values", "size": VALUES + FIRST_ID}
        )

    def numeric(name: str, side: str) -> FeatureField:
        return FeatureField.model_validate(
            {"name": name, "kind": "numeric", "side": side, "edges": {10: tuple(float(e) for e in range(9))}}
        )

    history = FeatureField(
        name="history", kind="sequence", side="user", vocabulary="values", size=VALUES + FIRST_ID, length=RECENT,
        of="item0",
    )
    crosses = [
        FeatureField(name=f"cross{i}", kind="cross", side="cross", parts=(f"user{i}", f"item{i}"), buckets=BUCKETS,
                     size=BUCKETS + FIRST_ID)
        for i in range(4)
    ]
    return FeatureSpec(has_bid=True, fields=(
        *(categorical(f"user{i}", "user") for i in range(8)), *(numeric(name, "user") for name in counters),
        history, *(categorical(f"context{i}", "context") for i in range(2)),
        *(categorical(f"item{i}", "item") for i in range(16)), *(numeric(name, "item") for name in rates),
        *crosses,
    ))


def table(rows: int, side: str, prefix: str, encoder: Encoder, rng: np.random.Generator) -> FeatureStore:
    """Random features of `rows` keys, within the sizes of the spec."""
    slots = encoder.spec.id_slots(side)  # type: ignore[arg-type]
    drawn = [rng.integers(1, slot.size, (rows + 1, slot.width), dtype=np.int32) for slot in slots]
    dense = rng.standard_normal((rows + 1, len(encoder.spec.dense_slots(side))), dtype=np.float32)  # type: ignore[arg-type]
    keys = Vocabulary.of([f"{prefix}{row}" for row in range(rows)], "string")
    return FeatureStore(keys, np.concatenate(drawn, axis=1), dense)


def world(
    items: int, ranker: str, seed: int = 0, counters: Sequence[str] = COUNTERS, rates: Sequence[str] = RATES,
    flat_below: int = 99_999,
) -> LoadedBundle:
    """`counters` name the users' numbers, `rates` the items'. Up to `flat_below` items are searched exactly."""
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    fields, train, retrieve = spec(counters, rates), Train(), Retrieve(flat_below=min(flat_below, items))
    encoder = Encoder(fields, {"values": Vocabulary.of([f"v{i}" for i in range(VALUES)], "string")})
    item_table, bids = table(items, "item", "i", encoder, rng), rng.lognormal(size=items).astype(np.float32)
    towers = TwoTower(fields, train.embedding_dim, train.tower_hidden, train.tower_dim, 0.0, train.temperature).eval()
    with torch.inference_mode():
        vectors = towers.item_vector(block(Encoded(item_table.ids[:-1], item_table.dense[:-1]))).numpy().copy()
    indexed = item_index.with_bids(vectors, bids, train.temperature)
    network = registry.build(ranker, fields, train).eval().requires_grad_(False)
    part = rank_part(network, item_table, Serve().item_part_mb)
    return LoadedBundle(
        manifest=Manifest(schema_version=SCHEMA_VERSION, name="synthetic", content_hash="0" * 64,
                          created=datetime.now(UTC), files={}),
        spec=fields, encoder=encoder,
        settings=BundleSettings(ranker=ranker, auction=True, train=train, retrieve=retrieve,
                                prerank=Prerank(kind="towers", hidden=(32,)), rerank=Rerank(), serve=Serve()),
        users=table(USERS, "user", "u", encoder, rng), items=item_table, bids=bids, filters={},
        recent=rng.integers(0, items, (USERS, RECENT)).astype(np.int32), towers=towers, item_vectors=vectors,
        index=item_index.build(indexed, retrieve),
        neighbours=rng.integers(0, items, (items, retrieve.neighbours)).astype(np.int32),
        popularity=rng.permutation(items).astype(np.int32),
        pre_ranker=PreRanker(train.tower_dim, (32,)).eval().requires_grad_(False), fscd=None, item_part=None,
        ranker=network, rank_table=None if part is None else RankTable(network, part),
        prerank_calibration=calibration.identity(), calibration=calibration.identity(), parity=None,
    )


def clock(
    work: Callable[[int], object], times: int, timer: Callable[[], float] = time.perf_counter
) -> list[float]:
    """Milliseconds of each call, after a warm-up of a tenth."""
    spent = []
    for n in range(times + times // 10):
        start = timer()
        work(n)
        spent.append((timer() - start) * 1000)
    return spent[times // 10 :]


class Ratio(NamedTuple):
    """Over the floor: the median of the rounds, and how far they lie apart."""

    median: float
    least: float
    most: float

    @classmethod
    def of(cls, over: Sequence[float], under: Sequence[float]) -> Ratio:
        found = [a / b for a, b in zip(over, under, strict=True)]
        return cls(statistics.median(found), min(found), max(found))


@dataclass(frozen=True, kw_only=True)
class BesideFloor:
    """The whole funnel without and with reasons, and its floor without theirs: CPU milliseconds, round after round."""

    plain: list[float]
    explained: list[float]
    floor: list[float]

    @property
    def plain_ratio(self) -> Ratio:
        return Ratio.of(self.plain, self.floor)

    @property
    def explained_ratio(self) -> Ratio:
        """With reasons, over the floor of a request without: what is asked of reasons is that they cost little."""
        return Ratio.of(self.explained, self.floor)


def asked(number: int) -> tuple[str, dict[str, str]]:
    """The user and the context of a request."""
    return f"u{number % USERS}", {"context0": f"v{number % VALUES}"}


def beside_floor(bundle: LoadedBundle, times: int, rounds: int = ROUNDS) -> BesideFloor:
    """`times` requests of each kind, spread over the rounds."""
    funnel, bare, limit = Funnel(bundle), BareCascade(bundle), bundle.settings.serve.default_limit

    def ask(number: int, reasons: bool) -> None:
        user, context = asked(number)
        funnel.rank(RankQuery(user, limit, context, explain=reasons), Deadline(None))

    def median(work: Callable[[int], object]) -> float:
        return statistics.median(clock(work, max(times // rounds, 1), time.thread_time))

    found = BesideFloor(plain=[], explained=[], floor=[])
    with torch.inference_mode():
        for _ in range(rounds):
            found.plain.append(median(lambda n: ask(n, False)))
            found.floor.append(median(lambda n: bare(*asked(n), limit)))
            found.explained.append(median(lambda n: ask(n, True)))
    return found


def measure_floor(bundle: LoadedBundle, requests: int) -> dict[str, float]:
    """Median milliseconds per stage, and of those that rank."""
    bare, limit, spent = BareCascade(bundle), bundle.settings.serve.default_limit, dict[str, list[float]]()

    def ask(number: int) -> None:
        done: Any = asked(number)
        for name, stage in bare.stages(limit).items():
            begun = time.perf_counter()
            done = stage(done)
            spent.setdefault(name, []).append((time.perf_counter() - begun) * 1000)

    with torch.inference_mode():
        clock(ask, requests)
    found = {name: statistics.median(times[-requests:]) for name, times in spent.items()}
    return {**found, "ranking": sum(found.values())}


def measure(bundle: LoadedBundle, requests: int) -> dict[str, list[float]]:
    """Milliseconds per stage, of the stages that rank together, and of the whole with explanations."""
    funnel = Funnel(bundle)
    stages: dict[str, list[float]] = {}

    def ask(n: int) -> None:
        limit = bundle.settings.serve.default_limit
        user, context = asked(n)
        for report in funnel.rank(RankQuery(user, limit, context, explain=True), Deadline(10.0)).stages:
            stages.setdefault(report.name, []).append(report.microseconds / 1000)

    clock(ask, requests)
    recent = {name: spent[-requests:] for name, spent in stages.items()}
    ranking = [sum(parts) for parts in zip(*(recent[name] for name in recent if name != "explain"), strict=True)]
    return {**recent, "ranking": ranking, "whole": [r + e for r, e in zip(ranking, recent["explain"], strict=True)]}


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--requests", type=int, default=500)
    parser.add_argument("--ranker", default="dnn", choices=registry.names())
    chosen = parser.parse_args(argv)
    torch.set_num_threads(1)
    threadpool_limits(1)
    bundle = world(chosen.items, chosen.ranker)
    measured = measure(bundle, chosen.requests)
    floor = measure_floor(bundle, chosen.requests)
    print(f"{chosen.items} items, ranker {chosen.ranker}, {chosen.requests} requests, milliseconds; "
          f"load average of the machine {os.getloadavg()[0]:.1f}")
    print(f"{'stage':<10}{'median':>8}{'p95':>8}{'floor':>8}{'ratio':>8}")
    found: dict[str, dict[str, float]] = {}
    for name, spent in measured.items():
        middle, late = statistics.median(spent), float(np.quantile(spent, 0.95))
        against = f"{floor[name]:8.3f}{middle / floor[name]:8.2f}" if name in floor else ""
        print(f"{name:<10}{middle:8.3f}{late:8.3f}{against}")
        found[name] = {"median": middle, "p95": late, **({"floor": floor[name]} if name in floor else {})}
    beside = beside_floor(bundle, chosen.requests)
    ratios = {"funnel_over_floor": beside.plain_ratio, "explained_over_floor": beside.explained_ratio}
    for name, ratio in ratios.items():
        print(f"{name}: {ratio.median:.2f} ({ratio.least:.2f} to {ratio.most:.2f} in {ROUNDS} rounds, CPU time)")
    print(json.dumps({"items": chosen.items, "ranker": chosen.ranker, "requests": chosen.requests,
                      "milliseconds": found, "ratios": ratios}))


if __name__ == "__main__":
    main()
