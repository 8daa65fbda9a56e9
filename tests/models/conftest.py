"""Encoded examples with a known answer: a small spec, random columns, labels drawn from a logit the test chooses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from contracts.config.training import Train
from contracts.features.feature_spec import FIRST_ID, FeatureField, FeatureSpec
from contracts.features.pair_graph import Relation
from models.compiled import kernels
from models.examples.batches import Batch, ExampleSet
from models.pair_rates.graph import PairGraph

USERS, ITEMS, GROUPS, TAGS, HISTORY, POSITIONS = 60, 30, 4, 3, 5, 4
Columns = dict[str, np.ndarray]


@pytest.fixture(scope="session")
def spec() -> FeatureSpec:
    price = FeatureField(name="price", kind="numeric", side="item", edges={3: (1.0, 2.0)}, mean=1.5, std=0.5)
    fields = (
        FeatureField(name="user", kind="categorical", side="user", size=USERS + 2),
        FeatureField(name="user_group", kind="categorical", side="user", size=GROUPS + 2),
        FeatureField(
            name="history", kind="sequence", side="user", of="item", vocabulary="item", size=ITEMS + 2, length=HISTORY
        ),
        FeatureField(name="hour", kind="numeric", side="context", mean=12.0, std=6.0),
        FeatureField(name="item", kind="categorical", side="item", vocabulary="item", size=ITEMS + 2),
        FeatureField(name="item_group", kind="categorical", side="item", size=GROUPS + 2),
        FeatureField(name="tags", kind="multi_valued", side="item", size=12, length=TAGS),
        price,
        FeatureField(name="both", kind="cross", side="cross", size=18, parts=("user_group", "tags"), buckets=16),
    )
    return FeatureSpec(fields=fields, has_position=True, positions=POSITIONS)


def draw_columns(spec: FeatureSpec, rows: int, seed: int) -> Columns:
    """Uniform ids, lists padded to the right at a random length (also empty), groups that follow from user and item."""
    random = np.random.default_rng(seed)
    columns: Columns = {}
    for slot in [*spec.block_ids("request"), *spec.block_ids("candidate")]:
        ids = random.integers(FIRST_ID, slot.size, size=(rows, slot.width)).astype(np.int32)
        if slot.width > 1:
            ids[np.arange(slot.width) >= random.integers(0, slot.width + 1, size=(rows, 1))] = 0
        columns[slot.name] = ids if slot.width > 1 else ids[:, 0]
    for dense in [*spec.block_dense("request"), *spec.block_dense("candidate")]:
        field = spec.by_name[dense.field]
        columns[dense.name] = random.normal(field.mean, field.std, rows)
    columns["user_group"] = (columns["user"] % GROUPS + FIRST_ID).astype(np.int32)
    columns["item_group"] = (columns["item"] % GROUPS + FIRST_ID).astype(np.int32)
    columns["_user"] = columns["user"].astype(np.int64)
    columns["_row"] = np.arange(rows, dtype=np.int64)
    columns["_position"] = random.integers(1, POSITIONS + 1, rows).astype(np.int32)
    return columns


def write_columns(folder: Path, columns: Columns, files: int = 3, row_group: int = 700) -> Path:
    """Two days, `files` files, several row groups each."""
    table = pa.table({name: pa.array(list(v)) if v.ndim == 2 else pa.array(v) for name, v in columns.items()})
    for number, part in enumerate(np.array_split(np.arange(table.num_rows), files)):
        day = folder / f"day=2026-01-0{1 + number * 2 // files}"
        day.mkdir(parents=True, exist_ok=True)
        pq.write_table(table.slice(part[0], len(part)), day / f"part-{number:05d}.parquet", row_group_size=row_group)
    return folder


@dataclass(frozen=True)
class World:
    """Train and validation examples with the true logits of the validation rows in file order."""

    train: ExampleSet
    validation: ExampleSet
    logits: np.ndarray


@pytest.fixture(scope="session")
def make_world(spec: FeatureSpec, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., World]:
    def make(logit: Callable[[Columns], np.ndarray], rows: int = 6000, seed: int = 0) -> World:
        folder = tmp_path_factory.mktemp("examples")
        sets, truth = {}, {}
        for number, window in enumerate(("train", "validation")):
            columns = draw_columns(spec, rows, seed * 2 + number)
            truth[window] = logit(columns)
            chance = np.random.default_rng(100 + number).random(rows)
            columns["_label"] = (chance < 1 / (1 + np.exp(-truth[window]))).astype(np.float64)
            sets[window] = ExampleSet(write_columns(folder / window, columns), spec)
        return World(sets["train"], sets["validation"], truth["validation"])

    return make


@pytest.fixture(scope="session")
def item_world(make_world: Callable[..., World]) -> World:
    """The logit depends on the item alone: every model can represent it."""
    effect = np.random.default_rng(5).normal(0, 2, ITEMS + 2)
    return make_world(lambda c: effect[c["item"]] - 0.5)


@pytest.fixture(scope="session")
def settings() -> Train:
    return Train(embedding_dim=8, hidden=(32, 16), cross_layers=2, cross_rank=8, batch_size=256, learning_rate=5e-3,
                 epochs=4, dropout=0.0, device="cpu", tower_dim=8, tower_hidden=(16,))


@pytest.fixture(scope="session")
def batch(item_world: World) -> Batch:
    return next(item_world.validation.batches(64))


@pytest.fixture(scope="session")
def columns() -> Callable[[FeatureSpec, int, int], Columns]:
    return draw_columns


@pytest.fixture(scope="session")
def write() -> Callable[..., Path]:
    return write_columns


@pytest.fixture(params=["compiled", "plain"])
def either(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """What is made in the test computes by the compiled code, or by its twin."""
    if request.param == "plain":
        monkeypatch.setattr(kernels, "library", lambda: None)
    elif kernels.library() is None:
        pytest.skip("no C++ compiler on this machine")
    return str(request.param)


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)


@pytest.fixture(scope="session")
def auc() -> Callable[[np.ndarray, np.ndarray], float]:
    """Share of (positive, negative) pairs in the right order, ties half; counted pair by pair."""

    def count(labels: np.ndarray, scores: np.ndarray) -> float:
        positive, negative = np.sort(scores[labels > 0]), scores[labels == 0]
        below = len(positive) - np.searchsorted(positive, negative, side="right")
        level = len(positive) - np.searchsorted(positive, negative, side="left")
        return float((below + level).sum() / (2 * len(positive) * len(negative)))

    return count


CITIES, BRANDS, KINDS = 12, 15, 3


@pytest.fixture(scope="session")
def pair_spec() -> FeatureSpec:
    """Cities of the user in regions, brands and tags of the item, ids 2 and up; the graph below is on these slots."""
    return FeatureSpec(fields=(
        FeatureField(name="age", kind="categorical", side="user", vocabulary="age", size=7),
        FeatureField(name="city", kind="categorical", side="user", vocabulary="city", size=CITIES + 2),
        FeatureField(name="price", kind="numeric", side="item", edges={3: (1.0, 2.0)}),
        FeatureField(name="tags", kind="multi_valued", side="item", vocabulary="tags", size=9, length=3),
        FeatureField(name="brand", kind="categorical", side="item", vocabulary="brand", size=BRANDS + 2),
    ))


@pytest.fixture(scope="session")
def pair_rates() -> np.ndarray:
    """[cities, brands]: the rate follows from the city's region and the brand's tier, id modulo 3."""
    region, tier = np.arange(CITIES)[:, None] % KINDS, np.arange(BRANDS)[None] % KINDS
    return np.where(region == tier, 0.4, 0.05)


@pytest.fixture(scope="session")
def pair_graph(pair_rates: np.ndarray) -> PairGraph:
    """Every fourth pair was never seen, the others 40 times; links name region and tier."""
    city, brand = (axis.ravel() for axis in np.meshgrid(np.arange(CITIES), np.arange(BRANDS), indexing="ij"))
    seen = (city + brand) % 4 != 0
    city, brand = city[seen], brand[seen]
    shown = np.full(len(city), 40)
    clicks = np.random.default_rng(0).binomial(shown, pair_rates[city, brand])
    cities, brands = np.arange(CITIES), np.arange(BRANDS)
    relations = [Relation("city", "brand", "pair"), Relation("city", "region", "link"),
                 Relation("brand", "tier", "link")]
    several = (np.r_[shown, np.full(CITIES + BRANDS, 100)], np.r_[clicks, np.zeros(CITIES + BRANDS, dtype=int)])
    return PairGraph.of(
        {"city": CITIES + 2, "brand": BRANDS + 2, "region": KINDS + 2, "tier": KINDS + 2}, relations,
        np.repeat([0, 1, 2], [len(city), CITIES, BRANDS]), np.r_[city, cities, brands] + FIRST_ID,
        np.r_[brand, cities % KINDS, brands % KINDS] + FIRST_ID, *several, several[0],
    )
