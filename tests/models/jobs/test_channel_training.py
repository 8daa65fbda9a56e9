from __future__ import annotations

import pyarrow.parquet as pq
import pytest

from contracts.artifacts import BEST_ITEMS, CHANNEL_PARITY, RECENT_ITEMS, SCORES, WEIGHTS
from contracts.bundle.bundle import load_weights
from contracts.config.stages import Channel
from contracts.errors import ConfigError
from contracts.features import vocabulary
from contracts.features.vocabulary import Vocabulary
from models.interactions.event_log import EventLog
from models.jobs.channel_training import train_channel
from tests.models.interaction_world import ITEMS, ring_split

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


def test_parity_rows_are_histories_newest_first_with_their_best_items(tmp_path):
    log = ring_log()
    train_channel("sasrec", Channel(settings=SMALL), log, tmp_path, 0)
    rows = pq.read_table(tmp_path / CHANNEL_PARITY).to_pylist()
    newest = log.split.train.of(0)[::-1]
    assert rows[0][RECENT_ITEMS] == [log.items.key(item - 2) for item in newest]
    assert all(len(row[BEST_ITEMS]) == 10 and row[SCORES] == sorted(row[SCORES], reverse=True) for row in rows)


def test_settings_that_the_model_lacks_are_refused(tmp_path):
    with pytest.raises(ConfigError, match="epoch"):
        train_channel("sasrec", Channel(settings={"epoch": 3}), ring_log(), tmp_path, 0)


def test_item_to_item_weights_are_saved_as_the_bundle_carries_them(tmp_path):
    made = train_channel("ease", Channel(settings={"l2": 5.0}), ring_log(), tmp_path, 0)
    arrays = load_weights(tmp_path / WEIGHTS)
    assert arrays["items"].shape == arrays["weights"].shape == (ITEMS + 2, ITEMS + 2)
    assert made.recall_at_10 > 0.5
