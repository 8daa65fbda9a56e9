"""What an encoder takes over: the parent's states wherever both know the items and what is told of them."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pyarrow.parquet as pq
import torch

from contracts.artifacts import CHANNEL_PARITY, CHANNEL_SETTINGS, WEIGHTS
from contracts.bundle.bundle import save_array
from contracts.config.stages import Channel, Retrieve
from contracts.features import vocabulary
from contracts.features.vocabulary import Vocabulary
from models.interactions.event_log import EventLog
from models.interactions.interactions import from_lists
from models.interactions.splits import leave_one_out
from models.interactions.told_events import Told
from models.jobs.carried_encoder import CarriedEncoder, carried
from models.jobs.channel_training import train_channel
from models.sequences.encoder import EncoderSettings, SequenceEncoder
from models.training import checkpoint
from tests.models.interaction_world import ring_split

SHAPE = EncoderSettings(width=8, length=6)
OLD, NEW = ["a", "b", "c", "d"], ["b", "c", "d", "e"]  # by the model; ids from 2 on


def drawn(table: int, told: tuple[int, ...] = (), shape: EncoderSettings = SHAPE) -> SequenceEncoder:
    network = SequenceEncoder(table, shape, told).eval()
    for parameter in network.parameters():
        torch.nn.init.normal_(parameter)
    return network


def parent_of(folder, network, items, events=(), kinds=()):
    """Its bundle has one item that the model does not know, and lacks one that it knows."""
    channel, tables = folder / "retrieval" / "channels" / "sasrec", folder / "tables"
    channel.mkdir(parents=True)
    checkpoint.save(network, channel / WEIGHTS)
    (channel / CHANNEL_SETTINGS).write_text(json.dumps({"encoder": network.settings.model_dump()}), encoding="utf-8")
    shown = [*items[1:], "odd"]
    vocabulary.write(tables, "items", Vocabulary.of(shown, "string"))
    save_array(channel / "items.npy", np.array([*(items.index(key) + 2 for key in items[1:]), 1], np.int32))
    if kinds:
        vocabulary.write(tables, "event_kind", Vocabulary.of(kinds, "string"))
    retrieve = Retrieve.model_validate({"events": events, "channels": {"sasrec": {}}})
    manifest = SimpleNamespace(version="shop-1", content_hash=f"hash of {items}")
    return SimpleNamespace(folder=folder, manifest=manifest, config=SimpleNamespace(retrieve=retrieve))


def log_of(items, told=None, kinds=()):
    split = leave_one_out(from_lists([[2, 3, 4, 5], [3, 4, 5]], len(items) + 2))
    if told is not None:
        values = np.full((len(split.train.items), int(bool(kinds))), 2)
        sizes = (len(kinds) + 2,) if kinds else ()
        split = split._replace(train=replace(split.train, told=Told(told, values, sizes)))
    columns = {"kind": Vocabulary.of(kinds, "string")} if kinds else {}
    return EventLog(split, Vocabulary.of(items, "string"), columns)


def test_states_of_items_that_both_know_are_the_parents_and_new_items_stay_new(tmp_path):
    old, network = drawn(6), drawn(6)
    fresh = network.items.weight.detach().clone()
    start = CarriedEncoder(parent_of(tmp_path, old, OLD), "sasrec", log_of(NEW))
    start(network)
    then, now = torch.tensor([[3, 1, 4, 5]]), torch.tensor([[2, 1, 3, 4]])  # b, unknown, c, d
    assert torch.equal(network(now), old(then))
    assert torch.equal(network.items.weight[5], fresh[5])
    assert start.figures is not None
    assert (start.figures.parent, start.figures.rows, start.figures.rows_carried) == ("shop-1", 6, 5)
    assert start.figures.anew == ()


def told(network: SequenceEncoder, place: int) -> torch.Tensor:
    return network.get_parameter(f"told.{place}.weight")


def test_values_of_columns_go_over_by_their_keys_and_gaps_as_they_are(tmp_path):
    old, network = drawn(6, (34, 4)), drawn(6, (34, 4))
    parent = parent_of(tmp_path, old, OLD, ("time", "kind"), ["click", "order"])
    CarriedEncoder(parent, "sasrec", log_of(NEW, True, ["order", "view"]))(network)
    assert torch.equal(told(network, 0), told(old, 0))
    assert torch.equal(told(network, 1)[2], told(old, 1)[3])  # order
    assert not torch.equal(told(network, 1)[3], told(old, 1)[2])  # view is new
    alone = drawn(6, (4,))
    CarriedEncoder(parent, "sasrec", log_of(NEW, False, ["order", "view"]))(alone)
    assert torch.equal(told(alone, 0)[2], told(old, 1)[3])


def test_another_shape_starts_cold(tmp_path):
    parent = parent_of(tmp_path, drawn(6), OLD)
    for shape in (SHAPE.model_copy(update={"width": 4}), SHAPE.model_copy(update={"block": "ligr"})):
        start, network = CarriedEncoder(parent, "sasrec", log_of(NEW)), drawn(6, shape=shape)
        before = {name: one.clone() for name, one in network.state_dict().items()}
        start(network)
        assert start.figures is None
        assert all(torch.equal(one, before[name]) for name, one in network.state_dict().items())


def test_channels_without_a_parent_of_their_own_start_cold(tmp_path):
    log, parent = log_of(NEW), parent_of(tmp_path, drawn(6), OLD)
    assert carried(None, "sasrec", log) is carried(parent, "hstu", log) is carried(parent, "ease", log) is None
    assert carried(parent, "sasrec", log) is not None


def test_a_channel_that_starts_from_its_parent_begins_where_that_ended(tmp_path):
    """One epoch from a trained parent finds what one from nothing does not; its digest names the parent."""
    split = ring_split(60)
    keys = [f"i{number:02d}" for number in range(split.train.table - 2)]
    log = EventLog(split, Vocabulary.of(keys, "string"))
    settings = {"epochs": 30, "validate_every": 5, "batch": 64, "learning_rate": 1e-2, "encoder": {"width": 16}}
    first = train_channel("sasrec", Channel(settings=settings), log, tmp_path / "first", 0)
    network = SequenceEncoder(split.train.table, EncoderSettings(width=16))
    checkpoint.load(network, tmp_path / "first" / WEIGHTS)
    parent = parent_of(tmp_path / "bundle", network, ["", *keys])
    save_array(tmp_path / "bundle" / "retrieval" / "channels" / "sasrec" / "items.npy",
               np.append(np.arange(2, len(keys) + 2), 1).astype(np.int32))
    short = Channel(settings={**settings, "epochs": 1, "learning_rate": 1e-5})
    cold = train_channel("sasrec", short, log, tmp_path / "cold", 0)
    warm = train_channel("sasrec", short, log, tmp_path / "warm", 0, parent=parent)
    assert cold.ndcg_at_10 < 0.6 * first.ndcg_at_10 < 0.9 * warm.ndcg_at_10
    assert warm.warm_start is not None
    assert warm.warm_start.rows_carried == len(keys) + 2
    assert cold.warm_start is None
    assert warm.digest != cold.digest
    assert pq.read_table(tmp_path / "warm" / CHANNEL_PARITY).num_rows == 60
