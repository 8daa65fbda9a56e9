"""A small marketplace whose bundle is real: encoded, trained, assembled and published by the product's own code.

60 users and 80 items; a user clicks what lies in the category of their taste, so the networks have something to learn.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from torch import nn

from contracts.artifacts import (
    BID,
    BID_AT,
    CALIBRATION,
    ITEM,
    RECENT_ITEMS,
    RECENT_TIMES,
    RECENT_VALUES,
    ROW,
    TEST_LOGITS,
    TEST_ROWS,
    USER,
    WEIGHTS,
    Artifacts,
)
from contracts.bundle import bundle
from contracts.config.config import Config
from contracts.config.stages import Retrieve
from contracts.features import vocabulary
from contracts.features.encoding import Encoded, Encoder
from contracts.features.feature_spec import FIRST_ID, FeatureField, FeatureSpec, PairModel
from contracts.features.vocabulary import Vocabulary
from contracts.summaries import summary
from contracts.summaries.train import TrainSummary
from models.evaluation import calibration
from models.examples.batches import FeatureBlock
from models.interactions.event_log import EventLog
from models.interactions.interactions import from_lists
from models.interactions.splits import leave_one_out
from models.interactions.told_events import SECOND, Told
from models.jobs.channel_training import train_channel
from models.layers.pair_rate_features import PairRateFeatures
from models.networks import registry
from models.networks.tower_pre_ranker import PreRanker
from models.networks.two_tower import TwoTower
from models.pair_rates import weights as pair_weights
from models.preranking.fscd import Fscd
from models.training import checkpoint
from serving.assembly.assemble import assemble
from serving.bundle.loaded_bundle import LoadedBundle
from tests.serving.counted_host import Host
from tests.serving.counted_items import countable

USERS, ITEMS, EVENTS = 60, 80, 3000
TASTES = ["books", "games", "music", "sport"]
TAGS = ["cheap", "new", "red", "soft"]
KINDS = ["click", "order"]  # of events, where they are told
EVENTS_FROM = 1_700_000_000 * SECOND
BORN, FIRST_BORN = "_born", 1_700_000_000  # when an item came to be: a day after the one before
STEPS = 40
DROPPED = ("visits", "tags", "hour_brand")  # by the pre-ranker, where it is FSCD

torch.set_num_threads(1)


@dataclass(frozen=True)
class Market:
    """Raw values: one row per user, per item, per event."""

    config: Config
    spec: FeatureSpec
    vocabularies: dict[str, Vocabulary]
    users: dict[str, list[Any]]
    items: dict[str, list[Any]]
    events: dict[str, list[Any]]
    labels: np.ndarray

    @property
    def encoder(self) -> Encoder:
        return Encoder(self.spec, self.vocabularies)


def make_config(has_bid: bool = True, **sections: dict[str, Any]) -> Config:
    settings: dict[str, dict[str, Any]] = {
        "train": {"ranker": "dnn", "models": ["dnn"], "embedding_dim": 4, "hidden": [16], "dropout": 0.0,
                  "tower_dim": 8, "tower_hidden": [16]},
        "retrieve": {"candidates": 40, "two_tower": 20, "item_to_item": 10, "popularity": 10, "neighbours": 5,
                     "filter_fields": ["category", "brand"]},
        "prerank": {"kind": "towers", "keep": 20, "hidden": [8], "recall_at": 5},
        "serve": {"default_limit": 5, "max_limit": 10, "max_candidates": 50, "parity_rows": 64, "deadline_ms": 60_000},
    }
    for name, changes in sections.items():
        settings[name] = {**settings.get(name, {}), **changes}
    log = {"path": "log", "user_id": "user", "item_id": "item", "event_time": "time",
           "bid": "bid" if has_bid else None}
    return Config.model_validate({
        "name": "market", "log": log, "label": {"expression": "clicked"},
        "fields": [{"name": "category", "kind": "categorical", "side": "item"}], **settings,
    })


def make_spec(vocabularies: dict[str, Vocabulary], has_bid: bool, moods: bool = False) -> FeatureSpec:
    """`moods` adds a context field of several values."""

    def known(name: str) -> dict[str, Any]:
        return {"vocabulary": name, "size": len(vocabularies[name]) + 2}

    fields: tuple[FeatureField, ...] = (
        FeatureField(name="taste", kind="categorical", side="user", **known("taste")),
        FeatureField(name="visits", kind="numeric", side="user", edges={2: (3.0,)}, log=True, mean=1.5, default=4),
        FeatureField(name="history", kind="sequence", side="user", of="item_id", length=3, **known("item_id")),
        FeatureField(name="device", kind="categorical", side="context", **known("device")),
        FeatureField(name="hour", kind="numeric", side="context", edges={4: (6, 12, 18)}, mean=12, std=7, default=12),
        FeatureField(name="item_id", kind="categorical", side="item", **known("item_id")),
        FeatureField(name="category", kind="categorical", side="item", **known("category")),
        FeatureField(name="brand", kind="categorical", side="item", key_type="int64", **known("brand")),
        FeatureField(name="tags", kind="multi_valued", side="item", length=2, **known("tags")),
        FeatureField(name="price", kind="counter", side="item", edges={3: (2.0, 5.0)}, mean=4.0, std=2.0, default=4.0),
        FeatureField(name="taste_category", kind="cross", side="cross", parts=("taste", "category"),
                     **known("taste_category")),
        FeatureField(name="hour_brand", kind="cross", side="cross", parts=("hour#4", "brand"), buckets=7, size=9),
    )
    if moods:
        several = FeatureField(name="moods", kind="multi_valued", side="context", length=2, **known("tags"))
        fields = (*fields[:5], several, *fields[5:])
    return FeatureSpec(fields=fields, has_bid=has_bid)


def make_market(config: Config, seed: int = 5) -> Market:
    draw = np.random.default_rng(seed)
    item_keys = [f"i{number:02d}" for number in range(ITEMS)]
    items: dict[str, list[Any]] = {
        ITEM: item_keys, "item_id": item_keys,
        "category": [None if n == 7 else TASTES[n % 4] for n in range(ITEMS)],
        "brand": [None if n == 9 else int(n % 6) * 10**12 for n in range(ITEMS)],
        "tags": [sorted(draw.choice(TAGS, draw.integers(0, 4), replace=False).tolist()) for _ in range(ITEMS)],
        "price": [None if n == 11 else float(draw.uniform(0, 9)) for n in range(ITEMS)],
        BID: draw.uniform(0.2, 3.0, ITEMS).tolist(),
        BID_AT: [*range(ITEMS)],
        BORN: [None if n == 13 else FIRST_BORN + 86_400 * n for n in range(ITEMS)],
    }
    users: dict[str, list[Any]] = {
        USER: [f"u{number:02d}" for number in range(USERS)],
        "taste": [None if n == 3 else TASTES[n % 4] for n in range(USERS)],
        "visits": [None if n == 4 else float(draw.poisson(4)) for n in range(USERS)],
        "history": [draw.choice(item_keys, n % 5, replace=False).tolist() for n in range(USERS)],
    }
    users["_recent_items"] = [[*history, "gone"] for history in users["history"]]
    user, item = draw.integers(0, USERS, EVENTS), draw.integers(0, ITEMS, EVENTS)
    events: dict[str, list[Any]] = {
        name: [values[row] for row in rows] for table, rows in ((users, user), (items, item))
        for name, values in table.items() if not name.startswith("_")}
    devices = np.array(["phone", "desk", None], dtype=object)
    events |= {"device": draw.choice(devices, EVENTS).tolist(), "hour": draw.uniform(0, 24, EVENTS).tolist()}
    labels = (draw.random(EVENTS) < np.where(user % 4 == item % 4, 0.6, 0.1)).astype(np.float32)
    items["_shown"] = np.bincount(item, minlength=ITEMS).tolist()
    items["_clicks"] = np.bincount(item, weights=labels, minlength=ITEMS).astype(int).tolist()
    vocabularies = make_vocabularies(item_keys)
    spec = make_spec(vocabularies, config.log.bid is not None)
    return Market(config, spec, vocabularies, users, items, events, labels)


PARITY_ROWS = 100


def several_values(count: int) -> list[list[str] | None]:
    """None, one, some more than a field holds, and values that no vocabulary knows."""
    return [None, [], ["new"], ["soft", "cheap"], ["red", "cheap", "new"], ["odd", "red"]] * (count // 6)


def make_vocabularies(item_keys: list[str]) -> dict[str, Vocabulary]:
    """The last five items are too new for the vocabulary; one pair of taste and category is unseen."""
    texts = {"taste": TASTES, "category": TASTES, "device": ["desk", "phone"], "tags": TAGS[:3],
             "item_id": item_keys[:-5]}
    known = {name: Vocabulary.of(values, "string") for name, values in texts.items()}
    known["brand"] = Vocabulary.of(np.arange(6) * 10**12, "int64")
    codes = (np.arange(2, 6)[:, None] * (len(TASTES) + 2) + np.arange(2, 6)).ravel()
    return {**known, "taste_category": Vocabulary.of(np.sort(codes)[:-1], "int64")}


def encode_events(market: Market) -> tuple[Encoded, Encoded]:
    """Request and candidate blocks of all events."""
    encoder, spec = market.encoder, market.spec
    request, item = encoder.encode(market.events, "user", "context"), encoder.encode(market.events, "item")
    part_ids = {}
    for slot in encoder.part_slots.values():
        sides, block = (("item",), item) if slot.side == "item" else (("user", "context"), request)
        start = next(s.start for s in spec.id_slots(*sides) if s.name == slot.name)
        part_ids[slot.name] = block.ids[:, start]
    return request, Encoded(np.concatenate([item.ids, encoder.cross_ids(part_ids)], axis=1), item.dense)


def train(network: nn.Module, score: Callable[[], torch.Tensor], labels: np.ndarray) -> None:
    parameters = list(network.parameters())
    optimizer = torch.optim.Adam(parameters, lr=0.03)
    for _ in range(STEPS):
        optimizer.zero_grad()
        nn.functional.binary_cross_entropy_with_logits(score(), torch.from_numpy(labels)).backward()
        for parameter in parameters:
            if parameter.grad is not None and parameter.grad.is_sparse:  # Adam takes no sparse gradient
                parameter.grad = parameter.grad.to_dense()
        optimizer.step()
    network.eval()


def train_all(market: Market, out: Artifacts, request: FeatureBlock, candidate: FeatureBlock) -> None:
    """Towers, pre-ranker and ranker, the last two with a calibration, where `sluice train` leaves them."""
    torch.manual_seed(1)
    settings = market.config.train
    towers = TwoTower(
        market.spec, settings.embedding_dim, settings.tower_hidden, settings.tower_dim, 0.0, settings.temperature)
    train(towers, lambda: towers(request, candidate), market.labels)
    pre_ranker = PreRanker(settings.tower_dim, market.config.prerank.hidden)
    with torch.no_grad():
        user, item = towers.user_vector(request), towers.item_vector(candidate)
    train(pre_ranker, lambda: pre_ranker(user, item), market.labels)
    ranker = registry.build("dnn", market.spec, settings)
    pair_weights.load_into(ranker, market.spec, out.pair_rates)
    train(ranker, lambda: ranker(request, candidate), market.labels)
    for name, network in (("two_tower", towers), ("pre_ranker", pre_ranker), ("dnn", ranker)):
        checkpoint.save(network, out.model(name) / WEIGHTS)
    with torch.no_grad():
        logits = {"dnn": ranker(request, candidate).double().numpy(),
                  "pre_ranker": pre_ranker(user, item).double().numpy(),
                  "two_tower": towers(request, candidate).double().numpy()}
    if market.config.prerank.kind == "fscd":
        fscd = Fscd(market.spec, market.config.prerank.embedding_dim, market.config.prerank.hidden)
        fscd.keep([name for name in fscd.fields if name not in DROPPED])
        train(fscd, lambda: fscd(request, candidate), market.labels)
        checkpoint.save(fscd, out.model("fscd") / WEIGHTS)
        with torch.no_grad():
            logits["fscd"] = fscd(request, candidate).double().numpy()
    for name, found in logits.items():
        curve = calibration.fit("platt", found, market.labels)
        bundle.save_weights(out.model(name) / CALIBRATION, curve.arrays())
    bundle.save_array(out.model("dnn") / TEST_LOGITS, logits["dnn"][:PARITY_ROWS])
    bundle.save_array(out.model("dnn") / TEST_ROWS, np.arange(PARITY_ROWS)[::-1])
    summary.write(out.out / "models", TrainSummary(ranker="dnn"))


def ring_log(items: Sequence[str], retrieve: Retrieve) -> EventLog:
    """Users who take one item after the other, round and round; the last five items are too new. `retrieve.events` are
    told: a minute or a day between them, and KINDS in turn."""
    known = Vocabulary.of(items[:-5], "string")
    steps = [[(start + step) % len(known) + FIRST_ID for step in range(4 + start % 9)] for start in range(len(known))]
    log = from_lists(steps, len(known) + FIRST_ID)
    count = len(log.items)
    if not retrieve.events:
        return EventLog(leave_one_out(replace(log, times=np.arange(count))), known)
    gaps = np.where(np.arange(count) % 3, 60, 86_400) * SECOND
    values = np.stack([FIRST_ID + (np.arange(count) + place) % len(KINDS)
                       for place, _ in enumerate(retrieve.event_columns)], 1)
    told = Told(retrieve.event_times, values, (len(KINDS) + FIRST_ID,) * values.shape[1])
    log = replace(log, times=EVENTS_FROM + np.cumsum(gaps), told=told)
    return EventLog(leave_one_out(log), known,
                    {name: Vocabulary.of(KINDS, "string") for name in retrieve.event_columns})


def train_channels(market: Market, out: Artifacts) -> None:
    """Channels of `retrieve.channels` that learn the ring."""
    for name, channel in market.config.retrieve.channels.items():
        train_channel(name, channel, ring_log(market.items[ITEM], market.config.retrieve), out.channel(name), 0)


def write_table(folder: Path, columns: dict[str, Any]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), folder / "part-0.parquet")


def write_parity(market: Market, out: Artifacts, request: Encoded, candidate: Encoded, rows: int = PARITY_ROWS) -> None:
    ids: dict[str, Any] = {}
    for slots, block in ((market.spec.block_ids("request"), request), (market.spec.block_ids("candidate"), candidate)):
        for slot in slots:
            values = block.ids[:rows, slot.start : slot.start + slot.width]
            ids[f"id:{slot.name}"] = values[:, 0] if slot.width == 1 else list(values)
    raw = {name: values[:rows] for name, values in market.events.items()}
    write_table(out.parity, {ROW: np.arange(rows)[::-1].copy(), **raw, **ids})


def write_outputs(market: Market, out: Artifacts) -> None:
    """Everything that the pipelines and training leave for `assemble`; table rows come in no particular order."""
    out.encoding.mkdir(parents=True)
    market.spec.write(out.encoding)
    for name, keys in market.vocabularies.items():
        vocabulary.write(out.encoding, name, keys)
    order = np.random.default_rng(3)
    for folder, columns in ((out.online_users, market.users), (out.online_items, market.items)):
        shuffled = order.permutation(len(next(iter(columns.values()))))
        write_table(folder, {name: [values[row] for row in shuffled] for name, values in columns.items()})
    request, candidate = encode_events(market)
    write_parity(market, out, request, candidate)
    blocks = [FeatureBlock(torch.from_numpy(part.ids), torch.from_numpy(part.dense)) for part in (request, candidate)]
    train_all(market, out, *blocks)
    train_channels(market, out)


def told_users(market: Market, retrieve: Retrieve) -> dict[str, list[Any]]:
    """The users' table with what `retrieve.events` asks of their histories."""
    lists = market.users[RECENT_ITEMS]
    times = {RECENT_TIMES: [[EVENTS_FROM - 3600 * SECOND * n for n, _ in enumerate(items)] for items in lists]}
    values = {f"{RECENT_VALUES}{name}": [[[*KINDS, None, "odd"][n % 4] for n, _ in enumerate(items)] for items in lists]
              for name in retrieve.event_columns}
    return {**market.users, **(times if retrieve.event_times else {}), **values}


@pytest.fixture(scope="session")
def market() -> Market:
    return make_market(make_config())


@pytest.fixture(scope="session")
def trained(market: Market, tmp_path_factory: pytest.TempPathFactory) -> Artifacts:
    """The output folder before `assemble`; treat as read-only."""
    out = Artifacts(tmp_path_factory.mktemp("trained"))
    write_outputs(market, out)
    return out


@pytest.fixture
def trained_copy(trained: Artifacts, tmp_path: Path) -> Artifacts:
    """An output folder to spoil."""
    return Artifacts(shutil.copytree(trained.out, tmp_path / "out"))


def with_random_statistics(
    spec: FeatureSpec, pairs: Sequence[tuple[str, str]], config: Config, out: Artifacts
) -> FeatureSpec:
    """The spec with a statistic of each pair, and their weights where `sluice pretrain` leaves them."""
    model = PairModel(head="mlp", dim=4)
    made = PairRateFeatures(pair_weights.with_pair_rates(spec, pairs, model), model)
    torch.manual_seed(2)
    for parameter in made.parameters():
        nn.init.normal_(parameter)
    return pair_weights.publish(made, spec, pairs, config.pair_rates, out.pair_rates)


Publish = Callable[..., Path]


@pytest.fixture(scope="session")
def publish_bundle(market: Market, tmp_path_factory: pytest.TempPathFactory) -> Publish:
    """`publish_bundle(has_bid=False, rerank={"kind": "mmr"})` trains and publishes a bundle with other settings;
    `pairs` get statistics with random vectors; `moods` is a context field of several values."""

    def publish(
        has_bid: bool = True, pairs: Sequence[tuple[str, str]] = (), moods: bool = False, **sections: dict[str, Any]
    ) -> Path:
        config = make_config(has_bid, **sections)
        out = Artifacts(tmp_path_factory.mktemp("published"))
        spec = make_spec(market.vocabularies, has_bid, moods)
        events = {**market.events, "moods": several_values(EVENTS)} if moods else market.events
        spec = with_random_statistics(spec, pairs, config, out) if pairs else spec
        changed = replace(market, config=config, spec=spec, events=events, users=told_users(market, config.retrieve))
        write_outputs(changed, out)
        metrics = assemble(config, out, out.out / "build")
        bundle.publish(out.out / "build", out.bundle, config.name, metrics=metrics)
        return out.bundle

    return publish


RING: dict[str, dict[str, Any]] = {
    "sasrec": {"quota": 10, "settings": {
        "epochs": 30, "validate_every": 10, "batch": 64, "learning_rate": 0.02,
        "encoder": {"width": 16, "length": 10}}},
    "ease": {"quota": 4, "settings": {"l2": 1.0}}, "item_cosine": {"quota": 3}}


@pytest.fixture(scope="session")
def channel_folder(publish_bundle: Publish) -> Path:
    """A published bundle with further channels; treat as read-only."""
    return publish_bundle(retrieve={"channels": RING})


@pytest.fixture(scope="session")
def told_bundle(publish_bundle: Publish) -> LoadedBundle:
    """With an encoder that is told of events."""
    return LoadedBundle.load(publish_bundle(retrieve={
        "events": ["time", "kind"], "channels": {"sasrec": RING["sasrec"], "ease": RING["ease"]}}))


@pytest.fixture(scope="session")
def with_channel(channel_folder: Path) -> LoadedBundle:
    return LoadedBundle.load(channel_folder)


@pytest.fixture(scope="session")
def bundle_folder(market: Market, trained: Artifacts, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A published bundle with bids; treat as read-only."""
    folder = tmp_path_factory.mktemp("bundle")
    metrics = assemble(market.config, trained, folder / "build")
    bundle.publish(folder / "build", folder / "bundle", market.config.name, metrics=metrics)
    return folder / "bundle"


@pytest.fixture(scope="session")
def loaded(bundle_folder: Path) -> LoadedBundle:
    return LoadedBundle.load(bundle_folder)




@pytest.fixture
def republish(market: Market, tmp_path: Path) -> Callable[[Path], Path]:
    """Publishes a changed bundle folder with fresh checksums, so that the checks behind the checksums are reached."""

    def publish(folder: Path) -> Path:
        (folder / bundle.MANIFEST).unlink()
        bundle.publish(folder, tmp_path / "republished", market.config.name)
        return tmp_path / "republished"

    return publish


@pytest.fixture
def bundle_copy(bundle_folder: Path, tmp_path: Path) -> Path:
    """A published bundle to spoil."""
    return Path(shutil.copytree(bundle_folder, tmp_path / "copy"))


@pytest.fixture(scope="session")
def counted_folder(bundle_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return countable(bundle_folder, tmp_path_factory.mktemp("counted"))


@pytest.fixture(scope="session")
def counted(counted_folder: Path) -> LoadedBundle:
    """A bundle whose items have a counter of a minute; treat as read-only."""
    return LoadedBundle.load(counted_folder)


@pytest.fixture
def host(counted: LoadedBundle, tmp_path: Path) -> Iterator[Host]:
    """With a clock of its own, and nothing recorded."""
    with closing(Host(counted, tmp_path)) as made:
        yield made
