"""Network inputs of one request: the request block once, the candidate block per candidate.

`missing` is what the encoder writes for an absent value (unknown id, empty list, scaled default): context fields left
out of a request get it, and explanations compare with it.
"""

from __future__ import annotations

import time
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch

from contracts.features.encoding import Encoded, scale
from contracts.features.event_features import RECENT
from contracts.features.feature_spec import PADDING, FeatureField, IdSlot
from models.examples.batches import FeatureBlock
from models.inference.block_crosses import BlockCrosses
from serving.bundle.loaded_bundle import LoadedBundle
from serving.histories.late_clicks import listed
from serving.histories.recent_events import RecentEvents
from serving.request.given_items import GivenItems
from serving.request.query import ContextValue, FreshUser, RankQuery, ScoreQuery, as_column

NO_ITEMS = np.empty(0, dtype=np.int32)
KEPT_VALUES, SHORT = 1024, 64  # encoded values of the context, and characters of one that is kept


class Requester(NamedTuple):
    """`inputs` [1, ...] user then context inputs; `recent` item rows, newest first, known items alone; `events` what is
    told of them, where encoders read it."""

    known: bool
    inputs: Encoded
    recent: np.ndarray
    events: RecentEvents | None = None

    @property
    def cold(self) -> bool:
        """Nothing is known: no stored row, no recent items."""
        return not self.known and not len(self.recent)


class SequencePart(NamedTuple):
    """A history's columns of the request block, the column of the items' ids that it lists, and which items have a
    value there, None: all."""

    slot: IdSlot
    column: int
    listed: np.ndarray | None

    def of(self, rows: np.ndarray, item_ids: np.ndarray) -> np.ndarray:
        """Ids that the history has of clicks on item `rows`, as many as it holds; row -1, an unknown item, finds
        the table's row of missing values."""
        valued = rows if self.listed is None else rows[self.listed[rows]]
        return item_ids[valued[: self.slot.width], self.column]


def block(encoded: Encoded) -> FeatureBlock:
    return FeatureBlock(torch.from_numpy(encoded.ids), torch.from_numpy(encoded.dense))


class RequestFeatures:
    """Encodes requests as the bundle's spec lays inputs out; holds no state of a request."""

    def __init__(self, bundle: LoadedBundle) -> None:
        spec = bundle.spec
        self._bundle = bundle
        # Plain views of the memory maps: the subclass costs a Python call per operation.
        self._item_ids, self._item_dense = np.asarray(bundle.items.ids), np.asarray(bundle.items.dense)
        self._user_ids, self._user_values = np.asarray(bundle.users.ids), np.asarray(bundle.users.dense)
        self._recent, self._live, self._told = np.asarray(bundle.recent), tuple(bundle.live), bundle.told
        self._context = {field.name: field for field in spec.of_side("context")}
        self._users = {field.name: field for field in spec.of_side("user")}
        self._fields = self._context | self._users
        self._often = lru_cache(maxsize=KEPT_VALUES, typed=True)(self._encoded)
        self.missing_request = bundle.encoder.encode({}, "user", "context")
        self.missing_item = bundle.encoder.encode({}, "item")
        self.request_ids = {slot.name: slot for slot in spec.block_ids("request")}
        self.request_dense = {slot.name: slot for slot in spec.block_dense("request")}
        self.candidate_ids = {slot.name: slot for slot in spec.block_ids("candidate")}
        self._user_width = spec.id_width("user")
        self._user_dense = len(spec.dense_slots("user"))
        self._item_width = spec.id_width("item")
        self._crosses = len(spec.crosses())
        self._sequences = [
            SequencePart(self.request_ids[field.name], self.candidate_ids[field.of or ""].start,
                         bundle.listed.get(field.of or ""))
            for field in spec.of_side("user") if field.kind == "sequence"
        ]
        self._block_crosses = BlockCrosses(spec, bundle.encoder.vocabularies)

    def requester(self, query: RankQuery | ScoreQuery) -> Requester:
        """The user's stored row (the default row for an unknown user), recent items and context of the request."""
        known, inputs, recent, events = self._stored(query)
        ids, dense = self.missing_request.ids.copy(), self.missing_request.dense.copy()
        ids[0, : self._user_width], dense[0, : self._user_dense] = inputs
        if query.fresh is not None:
            recent, events = self._write_fresh(ids, dense, query.fresh, recent, events)
        if query.recent_items is not None:
            recent = self._bundle.items.rows(query.recent_items)
            events = self._told and self._told.of(len(recent), query.told)
            self._write_sequences(ids, recent)
        for name, value in query.context.items():
            self._write_value(ids, dense, self._context[name], value)
        found = recent >= 0
        now = events and events.at(found)._replace(now=time.time_ns() // 1000)
        return Requester(known, Encoded(ids, dense), recent[found], now)

    def _stored(self, query: RankQuery | ScoreQuery) -> tuple[bool, Encoded, np.ndarray, RecentEvents | None]:
        """Whether the user is known, the inputs of the user's side, one row, item rows of the history, and what is told
        of its events."""
        stored, told = query.fresh.stored if query.fresh else None, self._told
        if stored is not None:
            recent = self._bundle.items.rows(stored.recent) if stored.recent else NO_ITEMS
            return (True, Encoded(stored.inputs.ids[0], stored.inputs.dense[0]), recent,
                    told and told.of(len(recent), stored.told))
        row = self._bundle.users.row(query.user)
        recent = self._recent[row] if row >= 0 else NO_ITEMS
        return row >= 0, Encoded(self._user_ids[row], self._user_values[row]), recent, told and told.row(row)

    def _write_sequences(self, ids: np.ndarray, recent: np.ndarray) -> None:
        """A sequence shares the vocabulary of its target field, so its ids are the items' stored ones."""
        for part in self._sequences:
            listed, slot = part.of(recent, self._item_ids), part.slot
            ids[0, slot.start : slot.start + slot.width] = PADDING
            ids[0, slot.start : slot.start + len(listed)] = listed

    def _prepend(self, ids: np.ndarray, newer: np.ndarray) -> None:
        """Item rows before what the histories hold, which may be longer than what is kept of recent items."""
        for part in self._sequences:
            places = slice(part.slot.start, part.slot.start + part.slot.width)
            listed = part.of(newer, self._item_ids)
            ids[0, places] = np.concatenate([listed, ids[0, places]])[: part.slot.width]

    def _write_fresh(
        self, ids: np.ndarray, dense: np.ndarray, fresh: FreshUser, stored: np.ndarray, events: RecentEvents | None
    ) -> tuple[np.ndarray, RecentEvents | None]:
        """The user's values and histories as an online store knows them, those that the bundle reads; returns the
        recent items and their events."""
        for name, value in fresh.values.items():
            if name in self._users:
                self._write_value(ids, dense, self._users[name], value)
        found = stored >= 0
        newer, kept = self._newer(fresh, stored[found])
        if not len(newer):
            return stored, events
        recent = np.concatenate([newer, stored[found]])[:RECENT]
        self._prepend(ids, newer)
        if events is None or self._told is None:
            return recent, None
        told = self._told.of(len(kept), fresh.told).at(kept)
        return recent, told.before(events.at(found)).at(slice(RECENT))

    def _newer(self, fresh: FreshUser, stored: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Item rows of the recent clicks that the stored history lacks, and which of them these are, a mask."""
        rows, kept = self._bundle.items.rows(fresh.recent), np.ones(len(fresh.recent), dtype=bool)
        if fresh.overlap:
            items, places = zip(*fresh.overlap, strict=True)
            made = zip(self._bundle.items.rows(items).tolist(), (place >= 0 for place in places), strict=True)
            late = [place for place in places if place >= 0]
            again = [place for place, there in zip(late, listed(stored.tolist(), [*made]), strict=True) if there]
            kept[[place for place in again if place < len(kept)]] = False
        return rows[kept], kept

    def _write_value(self, ids: np.ndarray, dense: np.ndarray, field: FeatureField, value: ContextValue) -> None:
        short = not isinstance(value, tuple) and (not isinstance(value, str) or len(value) <= SHORT)
        places, number = (self._often if short else self._encoded)(field.name, value)
        for start, values in places:
            ids[0, start : start + len(values)] = values
        if number is not None:
            dense[0, self.request_dense[field.name].start] = number

    def _encoded(self, name: str, value: ContextValue) -> tuple[list[tuple[int, np.ndarray]], float | None]:
        """First columns and ids of a field's slots, and its number where it is one."""
        field = self._fields[name]
        column = [as_column(field, value)]
        blocks = self._bundle.encoder.field_ids(field, column)
        places = [(self.request_ids[slot].start, block[0]) for (slot, _, _), block in
                  zip(field.slots(), blocks, strict=True)]
        return places, float(scale(np.array(column, dtype=np.float64), field)[0]) if field.dense else None

    def stored_items(self, rows: np.ndarray) -> Encoded:
        """Of item rows [K], as the bundle's tables have them."""
        return Encoded(self._item_ids.take(rows, axis=0), self._item_dense.take(rows, axis=0))

    def candidate_inputs(
        self, rows: np.ndarray, request_ids: np.ndarray, given: GivenItems | None = None, numbers: bool = True
    ) -> Encoded:
        """Item inputs of the candidates `rows` [K], and their crosses with the requester's ids ([1, W]). Without
        `numbers`, which is for bundles without live inputs and requests without `given` items, `dense` is [K, 0]."""
        stored = rows if given is None else given.stored(rows)
        ids = np.empty((len(rows), self._item_width + self._crosses), dtype=np.int32)
        ids[:, : self._item_width] = self._item_ids.take(stored, axis=0)
        dense = self._item_dense.take(stored, axis=0) if numbers else np.empty((len(rows), 0), dtype=np.float32)
        for live in self._live:
            live.write(stored, ids, dense)
        if given is not None:
            where, which = given.places(rows)
            ids[where, : self._item_width], dense[where] = given.inputs.ids[which], given.inputs.dense[which]
        self.write_crosses(ids, request_ids)
        return Encoded(ids, dense)

    def write_crosses(self, candidate_ids: np.ndarray, request_ids: np.ndarray) -> None:
        """Fills the cross columns of `candidate_ids` [K, W] from its items' and `request_ids` ([1, W] or [K, W])."""
        self._block_crosses.write(candidate_ids, request_ids)
