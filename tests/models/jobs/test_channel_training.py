from __future__ import annotations

import functools
import json
import os
import signal
import sys
from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest

from contracts.artifacts import (
    ASKED,
    BEST_ITEMS,
    CHANNEL_PARITY,
    RECENT_ITEMS,
    RECENT_TIMES,
    RECENT_VALUES,
    SCORES,
    WEIGHTS,
)
from contracts.bundle.bundle import load_weights
from contracts.config.stages import Channel
from contracts.errors import ConfigError, SluiceError
from contracts.features import vocabulary
from contracts.features.vocabulary import Vocabulary
from models.distributed.run_checkpoint import STOP
from models.interactions.event_log import EventLog
from models.interactions.told_events import Told
from models.jobs.channel_training import train_channel
from models.jobs.resume import kept_alone
from models.jobs.train_job import train_models
from models.retrieval.popularity import WEEK
from tests.heard_progress import counts, heard
from tests.models.interaction_world import ITEMS, ring_split, told_halves

SMALL = {"epochs": 4, "validate_every": 2, "batch": 64, "encoder": {"width": 8, "length": 10}}


def ring_log() -> EventLog:
    return EventLog(ring_split(30), Vocabulary.of([f"i{number:02d}" for number in range(ITEMS)], "string"))


def test_a_channel_is_trained_once(tmp_path):
    log, channel = ring_log(), Channel(settings=SMALL)
    made = train_channel("sasrec", channel, log, tmp_path, 0)
    assert (made.items, made.users, made.validation_targets) == (ITEMS, 30, 30)
    assert len(vocabulary.read(tmp_path, "items")) == ITEMS
    written = (tmp_path / WEIGHTS).stat().st_mtime_ns
    assert train_channel("sasrec", channel, log, tmp_path, 0) == made
    assert (tmp_path / WEIGHTS).stat().st_mtime_ns == written
    other = train_channel("sasrec", channel, log, tmp_path, 1)
    assert other.digest != made.digest
    assert (tmp_path / WEIGHTS).stat().st_mtime_ns != written


def test_a_summary_of_another_release_is_as_good_as_none(tmp_path):
    log, channel = ring_log(), Channel(settings=SMALL)
    made = train_channel("sasrec", channel, log, tmp_path, 0)
    told = json.loads((tmp_path / "summary.json").read_text("utf-8"))
    (tmp_path / "summary.json").write_text(json.dumps(told | {"figure_of_tomorrow": 1}), "utf-8")
    assert train_channel("sasrec", channel, log, tmp_path, 0).digest == made.digest
    assert "figure_of_tomorrow" not in (tmp_path / "summary.json").read_text("utf-8")


def test_parity_rows_are_histories_newest_first_with_their_best_items(tmp_path):
    log = ring_log()
    train_channel("sasrec", Channel(settings=SMALL), log, tmp_path, 0)
    rows = pq.read_table(tmp_path / CHANNEL_PARITY).to_pylist()
    newest = log.split.train.of(0)[::-1]
    assert rows[0][RECENT_ITEMS] == [log.items.key(item - 2) for item in newest]
    assert all(len(row[BEST_ITEMS]) == 10 and row[SCORES] == sorted(row[SCORES], reverse=True) for row in rows)


def test_parity_rows_tell_of_events_what_training_read_and_another_telling_is_trained_anew(tmp_path):
    split = told_halves(30, gaps=True)
    told = Told(True, np.tile([[2], [3], [1]], (len(split.train.items), 1))[:len(split.train.items)], (4,))
    log = EventLog(split._replace(train=replace(split.train, told=told)), ring_log().items,
                   {"kind": Vocabulary.of(["click", "order"], "string")})
    split = log.split
    log = log._replace(split=split._replace(validation=split.validation._replace(history=split.train)))
    made = train_channel("sasrec", Channel(settings=SMALL), log, tmp_path, 0)
    assert len(vocabulary.read(tmp_path, "event_kind")) == 2
    rows, train = pq.read_table(tmp_path / CHANNEL_PARITY).to_pylist(), log.split.train
    assert train.times is not None
    assert rows[0][ASKED] == train.times.max()
    assert rows[0][RECENT_TIMES] == train.times[:train.lengths[0]][::-1].tolist()
    texts = {2: "click", 3: "order", 1: None}
    assert rows[0][f"{RECENT_VALUES}kind"] == [texts[id] for id in told.values[:train.lengths[0], 0][::-1]]
    other = log._replace(split=log.split._replace(train=replace(train, told=told._replace(gaps=False))))
    assert train_channel("ease", Channel(), log, tmp_path / "e", 0).digest != train_channel(
        "ease", Channel(), other, tmp_path / "e", 0).digest
    assert made.digest


def test_settings_that_the_model_lacks_are_refused(tmp_path):
    with pytest.raises(ConfigError, match="epoch"):
        train_channel("sasrec", Channel(settings={"epoch": 3}), ring_log(), tmp_path, 0)


def test_item_to_item_weights_are_saved_as_the_bundle_carries_them(tmp_path):
    made = train_channel("ease", Channel(settings={"l2": 5.0}), ring_log(), tmp_path, 0)
    arrays = load_weights(tmp_path / WEIGHTS)
    assert arrays["items"].shape == arrays["weights"].shape == (ITEMS + 2, ITEMS + 2)
    assert made.recall_at_10 > 0.5


@pytest.mark.parametrize(("name", "settings", "said"), [
    ("sasrec", {"epoch": 3}, "epoch"), ("light_gcn", {"layers": 0}, "set 1 or more"), ("als", {}, "pip install")])
def test_a_channel_that_cannot_be_trained_is_refused_before_any_model_is(
    make_task, monkeypatch, name, settings, said
):
    monkeypatch.setitem(sys.modules, "implicit", None)  # not installed
    task = make_task(models=["dnn"])
    retrieve = task.config.retrieve.model_copy(update={"channels": {name: Channel(settings=settings)}})
    with pytest.raises(ConfigError, match=said):
        train_models(task.config.model_copy(update={"retrieve": retrieve}), task.out)
    assert not task.out.model("dnn").exists()


def test_what_is_popular_of_late_is_counted_anew_where_times_have_changed(tmp_path):
    log = ring_log()
    times = np.arange(len(log.split.train.items))
    train, spread = replace(log.split.train, times=times), replace(log.split.train, times=times * WEEK)
    first, second = (
        train_channel("recent_popularity", Channel(), EventLog(log.split._replace(train=part), log.items), tmp_path, 0)
        for part in (train, spread))
    assert first.digest != second.digest


@pytest.mark.parametrize(("name", "settings"), [("sasrec", SMALL), ("light_gcn", {"epochs": 4, "batch": 64})])
def test_a_channel_that_was_stopped_goes_on_from_its_checkpoint(tmp_path, make_task, monkeypatch, name, settings):
    """And one with other settings is refused."""
    task, log, channel = make_task(checkpoint_minutes=60.0), ring_log(), Channel(settings=settings)
    whole = train_channel(name, channel, log, tmp_path / "whole", 0)
    kept = functools.partial(kept_alone, replace(task, resume=True))

    def stopped(folder, identity):
        found = kept(folder, identity)
        monkeypatch.setattr(found, "wish", told)
        return found

    def told(_):
        os.kill(os.getpid(), signal.SIGTERM)
        return STOP

    with pytest.raises(SluiceError, match="sluice train --resume"):
        train_channel(name, channel, log, tmp_path / "broken", 0, keep=stopped)
    assert (tmp_path / "broken" / "checkpoints").exists()
    with pytest.raises(ConfigError, match=r"differs in actions.*settings\.epochs \(4 there, 5 now\)"):
        train_channel(name, Channel(settings={**settings, "epochs": 5}), log, tmp_path / "broken", 0, keep=kept)
    made = train_channel(name, channel, log, tmp_path / "broken", 0, keep=kept)
    assert made.digest == whole.digest
    assert (tmp_path / "broken" / WEIGHTS).read_bytes() == (tmp_path / "whole" / WEIGHTS).read_bytes()
    assert not (tmp_path / "broken" / "checkpoints").exists()


@pytest.mark.parametrize(("name", "settings", "what"), [
    ("sasrec", SMALL, "epochs of transformer"),
    ("als", {"rounds": 4, "width": 8}, "rounds of als"),
    ("bpr", {"rounds": 4, "width": 8}, "rounds of bpr"),
    ("light_gcn", {"epochs": 4, "validate_every": 2, "width": 8}, "epochs of light_gcn"),
])
def test_epochs_of_a_channel_are_counted(name, settings, what, tmp_path):
    with heard() as said:
        train_channel(name, Channel(settings=settings), ring_log(), tmp_path, 0)
    assert counts(said, what) == [(epoch, 4) for epoch in range(1, 5)]
