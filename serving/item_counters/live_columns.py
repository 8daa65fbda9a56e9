"""Columns of the items' inputs that events move while a bundle is served: encoded once a change, read by requests.

    slot of a row   Slots.of_row; 0 where nothing of the item was recorded
    its inputs      one row of a table of ids and of one of numbers

What is read is as of one moment: a lock lies around the two reads of a request and around what is written.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from serving.item_counters.counter_features import CounterEncoder, CounterFeature
from serving.item_counters.item_slots import Slots


class Published(NamedTuple):
    """ids [S, ...] and dense [S, ...] of `features`, and the columns of an item's inputs that they fill."""

    features: tuple[CounterFeature, ...]
    ids: np.ndarray
    dense: np.ndarray
    id_columns: np.ndarray
    dense_columns: np.ndarray


class LiveColumns:
    """`ids` and `dense` are the columns that may ever be written. Nothing is until the first `publish`."""

    def __init__(self, features: Sequence[CounterFeature], encoder: CounterEncoder, slots: Slots) -> None:
        self._encoder, self._slots, self._lock = encoder, slots, threading.Lock()
        self.ids, self.dense = _columns(features)
        self._now: Published | None = None

    def write(self, rows: np.ndarray, ids: np.ndarray, dense: np.ndarray) -> None:
        """Into the inputs [K, ...] of item rows [K]; those of an unknown item, row -1, stay."""
        now = self._now
        if now is None or not len(rows):
            return
        with self._lock:
            now = self._now
            assert now is not None  # what is published once stays
            slots = self._slots.of_row.take(rows)
            slots[slots >= len(now.ids)] = 0  # given a moment ago, and nothing published of it
            own_ids, own_dense = now.ids.take(slots, axis=0), now.dense.take(slots, axis=0)
        if rows.min() >= 0:
            ids[:, now.id_columns], dense[:, now.dense_columns] = own_ids, own_dense
        else:
            known = np.flatnonzero(rows >= 0)
            ids[known[:, None], now.id_columns] = own_ids[known]
            dense[known[:, None], now.dense_columns] = own_dense[known]

    def publish(self, counts: np.ndarray, changed: np.ndarray, features: tuple[CounterFeature, ...]) -> None:
        """`counts` [S, measures] of all slots, of which some have changed; `features` are those to be written."""
        now = self._now
        if now is None or now.features != features:
            with_all = self._whole(counts, features)
            with self._lock:
                self._now = with_all
            return
        if len(counts) > len(now.ids):
            now = _grown(now, len(counts))
        found = self._encoder.inputs(counts[changed], features)
        with self._lock:
            now.ids[changed], now.dense[changed] = found
            self._now = now

    def _whole(self, counts: np.ndarray, features: tuple[CounterFeature, ...]) -> Published:
        return Published(features, *self._encoder.inputs(counts, features), *_columns(features))


def _columns(features: Sequence[CounterFeature]) -> tuple[np.ndarray, np.ndarray]:
    """Of ids and of numbers, in the order of the encoder's inputs."""
    return (np.array([column for one in features for column in one.ids], dtype=np.int64),
            np.array([one.dense for one in features], dtype=np.int64))


def _grown(now: Published, slots: int) -> Published:
    """With rows behind that are as slot 0: of which nothing is counted."""
    more = np.zeros(slots - len(now.ids), dtype=np.int64)
    return now._replace(ids=np.concatenate([now.ids, now.ids[more]]),
                        dense=np.concatenate([now.dense, now.dense[more]]))
