"""A bundle in memory: verified, memory-mapped, its networks rebuilt; refused when it scores otherwise than in training.

    feature_spec.json, vocabularies/, settings.json; event_features.json where events can be recorded, reference.json of
                what drift is held against (contracts/bundle/reference.py) unless the bundle is of an earlier release
    tables/     users_{keys,ids,dense}.npy, users_recent.npy, items_{keys,ids,dense}.npy, items_bid.npy,
                items_bid_at.npy, popularity.npy, filter_NAME_{codes,values}.npy, range_NAME.npy, group_COUNTER.npy
                what is told of recent items, and which of them histories list: serving/histories
    retrieval/  towers.safetensors, vectors.npy, index.faiss, neighbours.npy; channels/NAME/: serving/bundle/channels.py
    prerank/    calibration.safetensors; weights.safetensors unless dot product; FSCD: item_part.npy, of these weights
    rank/       weights.safetensors, calibration.safetensors; item_part.npy up to `serve.item_part_mb`, of these weights
    parity/     rows.parquet
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import NamedTuple, Protocol, Self

import numpy as np
from torch import nn

from contracts.artifacts import WEIGHTS
from contracts.bundle.bundle import Manifest, load_array
from contracts.bundle.reference import Reference
from contracts.config.stages import AGE, BID
from contracts.errors import BundleError
from contracts.features.encoding import Encoded
from contracts.features.event_features import EventFeatures
from contracts.features.feature_spec import FeatureSpec
from models.evaluation.calibration import Calibration
from models.inference import item_part as ranker_items
from models.networks.tower_pre_ranker import PreRanker
from models.networks.two_tower import TwoTower
from models.preranking.fscd_scorer import FscdSplit
from serving.bundle import channels, item_index
from serving.bundle.bundle_settings import BundleSettings
from serving.bundle.channel import Channel
from serving.bundle.feature_store import FeatureStore
from serving.bundle.filter_column import FilterColumn
from serving.bundle.item_index import ItemIndex
from serving.bundle.item_set import ItemSet
from serving.bundle.networks import load_fscd, load_pre_ranker, load_towers
from serving.bundle.number_column import NumberColumn
from serving.bundle.scoring_bundle import PARITY, RANK, ScoringBundle, load_calibration
from serving.histories import recent_events
from serving.histories.listed_values import Listed, listed_fields, load_listed
from serving.histories.recent_events import EventTables

TABLES, RETRIEVAL, PRERANK = "tables", "retrieval", "prerank"
ITEM_PART = "item_part.npy"
BID_TIMES, NEVER = "items_bid_at.npy", -1
SAMPLED, GAP = 64, 1e-4  # rows of the items' part that are computed again at load, and how far they may be off


class RankTable(NamedTuple):
    """What each item adds to the first layer of `ranker`, float32 [I + 1, H]; no other ranker may read it."""

    ranker: nn.Module
    rows: np.ndarray


class Numbers(Protocol):
    """A column of numbers of all items."""

    @property
    def values(self) -> np.ndarray: ...

    def within(self, least: float, most: float) -> ItemSet: ...


class LiveInputs(Protocol):
    """Columns of the items' inputs, of ids and of numbers, that change while the bundle is served."""

    ids: np.ndarray
    dense: np.ndarray

    def write(self, rows: np.ndarray, ids: np.ndarray, dense: np.ndarray) -> None:
        """As they are now, into the inputs [K, ...] of item rows [K]."""
        ...


@dataclass(frozen=True, eq=False, kw_only=True)
class LoadedBundle(ScoringBundle):
    """`item_vectors` [I, d] are the item tower's, `recent` [U, R] item rows padded right with -1, `popularity` [I] item
    rows, most popular first, `neighbours` [I, M] item rows padded right with -1. `prerank.kind` says whether
    `pre_ranker` or `fscd` is there; `item_part` [I, H] where it is precomputed.

    `numbers` by name are what ranges may ask for; `age` is counted from that of `retrieve.created_field`.

    Where items change (serving/catalogue/fresh_bundle.py) I counts rows, `shown` says which of them may be shown now,
    and `changed` bool [I] which are not as the bundle had them. `live` inputs (serving/item_counters) stand for those
    of `items` where items are ranked, and nowhere else. `groups` int32 [I] by counter are items that are counted
    together, -1 of none. `told`: what encoders read of recent items beside them; `listed`: which of them histories list
    (serving/histories). `bid_times` int64 [I]: of when the bids are, in microseconds, NEVER of an item that no
    impression had a bid of; None in bundles of before.
    """

    users: FeatureStore
    items: FeatureStore
    bids: np.ndarray | None
    filters: Mapping[str, FilterColumn]
    recent: np.ndarray
    towers: TwoTower
    item_vectors: np.ndarray
    index: ItemIndex
    neighbours: np.ndarray
    popularity: np.ndarray
    pre_ranker: PreRanker | None
    fscd: FscdSplit | None
    item_part: np.ndarray | None
    prerank_calibration: Calibration
    rank_table: RankTable | None = None
    channels: tuple[Channel, ...] = ()
    event_features: EventFeatures | None = None
    numbers: Mapping[str, Numbers] = field(default_factory=dict)
    shown: Callable[[], ItemSet] | None = None
    changed: np.ndarray | None = None
    live: Sequence[LiveInputs] = ()
    groups: Mapping[str, np.ndarray] = field(default_factory=dict)
    reference: Reference | None = None
    told: EventTables | None = None
    listed: Listed = field(default_factory=dict)
    bid_times: np.ndarray | None = None

    @classmethod
    def read(cls, folder: Path, manifest: Manifest, check_parity: bool) -> Self:
        """As the scoring part, and BundleError where that is all there is."""
        scoring = ScoringBundle.read(folder, manifest, check_parity)
        settings, spec = scoring.settings, scoring.spec
        if not spec.has_items:
            raise BundleError(
                f"{folder} scores rows and ranks no items, because its table has none, so that it cannot be served; "
                "set log.item_id and run again, or check it with `sluice verify`"
            )
        tables, retrieval, train = folder / TABLES, folder / RETRIEVAL, settings.train
        vectors, prerank = load_array(retrieval / "vectors.npy"), _prerank_parts(folder / PRERANK, spec, settings)
        items, events = FeatureStore.load(tables, "items"), EventFeatures.read(folder)
        listed = load_listed(tables, listed_fields(spec), len(items))
        told = recent_events.load(tables, settings.retrieve)
        bids = load_array(tables / "items_bid.npy") if spec.has_bid else None
        dated = bids is not None and (tables / BID_TIMES).exists()  # not in bundles of before
        return cls(
            **{part.name: getattr(scoring, part.name) for part in fields(ScoringBundle)},
            users=FeatureStore.load(tables, "users"), items=items,
            bids=bids, bid_times=load_array(tables / BID_TIMES) if dated else None,
            numbers=_numbers(tables, settings, bids),
            filters={name: FilterColumn.load(tables, name) for name in settings.retrieve.filter_fields},
            recent=load_array(tables / "users_recent.npy"), told=told, listed=listed,
            towers=load_towers(retrieval / "towers.safetensors", spec, train),
            item_vectors=vectors[:, : train.tower_dim],
            index=item_index.load(retrieval / "index.faiss", vectors, settings.retrieve),
            neighbours=load_array(retrieval / "neighbours.npy"), popularity=load_array(tables / "popularity.npy"),
            pre_ranker=prerank.pre_ranker, fscd=prerank.fscd, item_part=prerank.item_part,
            prerank_calibration=load_calibration(folder / PRERANK),
            channels=channels.load(retrieval, folder / PARITY, settings.retrieve, items, check_parity, told),
            event_features=events, groups=_groups(tables, events), reference=Reference.read(folder),
            rank_table=_rank_table(folder / RANK / ITEM_PART, scoring.ranker, items, check_parity),
        )


    @property
    def range_names(self) -> tuple[str, ...]:
        """What a request may ask ranges of."""
        return (*self.numbers, *([AGE] if self.settings.retrieve.created_field else []))

    def within(self, name: str, least: float, most: float) -> ItemSet:
        """Items whose number of that name lies within, bounds included; `age` in seconds, as of now."""
        if name != AGE:
            return self.numbers[name].within(least, most)
        created, now = str(self.settings.retrieve.created_field), time.time()
        return self.numbers[created].within(now - most, now - least)


def group_file(counter: str) -> str:
    """Within the tables."""
    return f"group_{counter}.npy"


def _groups(tables: Path, features: EventFeatures | None) -> dict[str, np.ndarray]:
    return {field.name: load_array(tables / group_file(field.name)) for field in features.groups} if features else {}


def _numbers(tables: Path, settings: BundleSettings, bids: np.ndarray | None) -> dict[str, Numbers]:
    found: dict[str, Numbers] = {name: NumberColumn.load(tables, name) for name in settings.retrieve.numbers}
    return found if bids is None else {BID: NumberColumn(bids), **found}


def _rank_table(path: Path, ranker: nn.Module, items: FeatureStore, check_parity: bool) -> RankTable | None:
    """None where the bundle has none. Raises BundleError where sampled rows are not these weights' and items'."""
    if not path.exists():
        return None
    found = load_array(path)
    if not check_parity:
        return RankTable(ranker, found)
    sample = np.linspace(0, len(items), SAMPLED, dtype=np.int64)
    again = ranker_items.table(ranker, Encoded(np.asarray(items.ids)[sample], np.asarray(items.dense)[sample]))
    if (again is None or found.shape != (len(items) + 1, again.shape[1])
            or not np.allclose(found[sample], again, rtol=GAP, atol=GAP)):
        raise BundleError(f"the items' part of the ranker, {path}, is not of this bundle's weights and items; assemble "
                          "the bundle again")
    return RankTable(ranker, found)


class _PrerankParts(NamedTuple):
    """What `prerank.kind` needs; the dot product needs nothing."""

    pre_ranker: PreRanker | None = None
    fscd: FscdSplit | None = None
    item_part: np.ndarray | None = None


def _prerank_parts(folder: Path, spec: FeatureSpec, settings: BundleSettings) -> _PrerankParts:
    kind, weights = settings.prerank.kind, folder / WEIGHTS
    if kind == "towers":
        return _PrerankParts(pre_ranker=load_pre_ranker(weights, settings.train, settings.prerank))
    if kind != "fscd":
        return _PrerankParts()
    network = load_fscd(weights, spec, settings.prerank)
    item_part = load_array(folder / ITEM_PART) if settings.prerank.item_side == "precomputed" else None
    return _PrerankParts(fscd=FscdSplit(network, network.kept_fields), item_part=item_part)
