"""`sluice measure-costs`: what each field costs the pre-ranking stage, by leaving one out in paired runs.

The stage is the server's own, with a network of the bundle's settings and random weights, which cost what trained ones
do. A pair times the stage with all fields and without one, directly after each other, at K candidates and at K / 10;
the order alternates. Medians of the differences d give

    us_per_candidate = (d(K) - d(K/10)) / (K - K/10),   us_per_request = d(K/10) - K/10 us_per_candidate

with 95% intervals from resampled pairs. Written to costs.json beside the bundle, whose checksums it must not change.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import numpy as np
import torch

from contracts.commit import present_commit
from contracts.features.field_costs import FILE, FieldCost, Interval, ItemSide, MeasuredCosts, field_bytes, field_keys
from models.preranking.fscd import Fscd
from models.preranking.fscd_scorer import FscdSplit
from serving.assembly.item_vectors import item_part
from serving.bundle.loaded_bundle import LoadedBundle
from serving.request.candidates import Candidates
from serving.request.deadline import Deadline
from serving.request.query import RankQuery
from serving.request.request_features import Requester, RequestFeatures
from serving.stages.prerank import PrerankStage
from serving.stages.prerank_scorers import FscdScorer

DRAWS = 400
FEW = 10  # the smaller number of candidates is so many times smaller
WARM_UP = 5
Work = Callable[[], object]


def measure(folder: Path, repetitions: int = 100, seed: int = 0) -> tuple[Path, MeasuredCosts]:
    """Measures and writes; raises what loading the bundle raises."""
    torch.set_num_threads(1)
    bundle = LoadedBundle.load(folder)
    costs = measured(bundle, repetitions, seed)
    path = folder.resolve().parent / FILE
    costs.write(path)
    return path, costs


@torch.inference_mode()
def measured(bundle: LoadedBundle, repetitions: int, seed: int) -> MeasuredCosts:
    """The whole stage and every field, for both item sides; `repetitions` pairs each."""
    count = min(bundle.settings.retrieve.candidates, len(bundle.items))
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(bundle.items))[:count].astype(np.int64)
    torch.manual_seed(seed)
    settings = bundle.settings.prerank
    network = Fscd(bundle.spec, settings.embedding_dim, settings.hidden).eval().requires_grad_(False)
    item_sides: tuple[ItemSide, ...] = ("precomputed", "on_request")
    benches = {side: _Bench(bundle, network, rows, side, repetitions, rng) for side in item_sides}
    source = present_commit(digits=7) or f"version {version('sluice')}"
    return MeasuredCosts(
        date=datetime.now(UTC), machine=machine(), commit=source, bundle=bundle.version, candidates=count,
        lookup_us=_lookup(bundle, rows, repetitions),
        whole={side: bench.whole() for side, bench in benches.items()},
        fields={side: {name: bench.field(name) for name in network.fields} for side, bench in benches.items()},
    )


class _Bench:
    """The stage with all fields and without one, on the same candidates; `item_side` says where their item part comes
    from."""

    def __init__(
        self, bundle: LoadedBundle, network: Fscd, rows: np.ndarray, item_side: ItemSide, repetitions: int,
        rng: np.random.Generator,
    ) -> None:
        self.bundle, self.network, self.rows = bundle, network, rows
        self.repetitions, self.rng = repetitions, rng
        key = bundle.users.key(0) if len(bundle.users) else ""
        self.requester: Requester = RequestFeatures(bundle).requester(RankQuery(user=key, limit=1))
        everything = FscdSplit(network, network.fields)
        self.item_part = item_part(everything, bundle.items) if item_side == "precomputed" else None
        self.stage = self._stage(everything)

    def _stage(self, split: FscdSplit) -> PrerankStage:
        curve = self.bundle.prerank_calibration
        return PrerankStage(self.bundle, FscdScorer(self.bundle, split, self.item_part, curve))

    def _work(self, stage: PrerankStage, count: int) -> Work:
        vector = np.zeros(self.bundle.item_vectors.shape[1], dtype=np.float32)
        candidates = Candidates(self.rows[:count], np.zeros(count, dtype=np.int8))
        late = Deadline(None)
        return lambda: stage.run(candidates, self.requester, vector, self.bundle.settings.auction, 1, late)

    def whole(self) -> Interval:
        work = self._work(self.stage, len(self.rows))
        return interval(np.array([_microseconds(work) for _ in range(self.repetitions)]), self.rng)

    def field(self, name: str) -> FieldCost:
        spec, dim = self.bundle.spec, self.bundle.settings.prerank.embedding_dim
        field = spec.by_name[name]
        without = self._stage(FscdSplit(self.network, [other for other in self.network.fields if other != name]))
        many, few = len(self.rows), max(len(self.rows) // FEW, 1)
        gaps = {count: paired(self._work(self.stage, count), self._work(without, count), self.repetitions)
                for count in (many, few)}
        slope = (gaps[many] - gaps[few]) / max(many - few, 1)
        return FieldCost(
            us_per_request=interval(gaps[few] - few * np.median(slope), self.rng),
            us_per_candidate=interval(slope, self.rng),
            bytes_per_key=field_bytes(field, spec, dim), keys=field_keys(field, spec),
        )


def paired(left: Work, right: Work, repetitions: int) -> np.ndarray:
    """Microseconds of `left` less those of `right`, run directly after each other in alternating order."""
    gaps = []
    for number in range(-WARM_UP, repetitions):
        if number % 2:
            second, first = _microseconds(right), _microseconds(left)
        else:
            first, second = _microseconds(left), _microseconds(right)
        if number >= 0:
            gaps.append(first - second)
    return np.array(gaps)


def interval(values: np.ndarray, rng: np.random.Generator) -> Interval:
    """The median and the 2.5% and 97.5% points of medians of resampled values."""
    draws = np.median(values[rng.integers(0, len(values), (DRAWS, len(values)))], axis=1)
    low, high = np.quantile(draws, [0.025, 0.975])
    return Interval(value=float(np.median(values)), low=float(low), high=float(high))


def _lookup(bundle: LoadedBundle, rows: np.ndarray, repetitions: int) -> float:
    """Per candidate: one column of the item table taken at the candidates' rows, as a vector of the network's width."""
    table = np.zeros((len(bundle.items) + 1, bundle.settings.prerank.embedding_dim), dtype=np.float32)
    spent = [_microseconds(lambda: table.take(rows, axis=0)) for _ in range(repetitions)]
    return float(np.median(spent)) / len(rows)


def _microseconds(work: Work) -> float:
    start = time.perf_counter_ns()
    work()
    return (time.perf_counter_ns() - start) / 1000


def machine() -> str:
    """Processor and system, as far as the system tells."""
    names = [line.partition(":")[2].strip() for line in _cpu_lines() if line.startswith("model name")]
    return f"{names[0] if names else platform.machine()}, {len(names) or 1} cores, {platform.system()}"


def _cpu_lines() -> list[str]:
    info = Path("/proc/cpuinfo")
    return info.read_text(encoding="utf-8").splitlines() if info.exists() else []


