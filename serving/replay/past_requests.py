"""Requests of a past window as the server would have seen them: user and context as encoded then, clicks known then.

Each stands for one impression: the request inputs of its example, and what its user had clicked by the last publish.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from contracts.artifacts import CLICK_TIME, ITEM, LABEL, LABEL_TIME, ROW, TIME, USER, Artifacts
from contracts.features.encoding import Encoded
from contracts.features.event_features import ToldEvents
from contracts.features.feature_spec import FeatureSpec
from models.examples.batches import ExampleSet
from serving.bundle.feature_store import FeatureStore
from serving.histories.recent_events import EventTables, RecentEvents
from serving.replay.item_snapshot import events, window
from serving.request.request_features import Requester

RECENT = 50
READ_ROWS = 65_536


@dataclass(frozen=True)
class PastRequest:
    """`clicked` is the item row of the impression where it was clicked, else -1; `uniform`: drawn among all; `time` in
    microseconds."""

    requester: Requester
    clicked: int
    uniform: bool
    time: int


class PastInputs(NamedTuple):
    """`rows` of the log, by number, and what the models see of who asked, B of both."""

    rows: np.ndarray
    inputs: Encoded


def sample(
    out: Artifacts, spec: FeatureSpec, items: FeatureStore, name: str, count: int, clicks: int, publish_every: int,
    rng: np.random.Generator, beside: EventTables | None = None,
) -> list[PastRequest]:
    """`count` impressions of the window drawn uniformly and up to `clicks` further ones that were clicked; `beside`:
    what is told of histories."""
    examples = ExampleSet(out.examples(name), spec)
    labels = examples.column(LABEL)
    uniform = rng.permutation(examples.rows)[:count]
    rest = np.setdiff1d(np.flatnonzero(labels > 0), uniform)
    chosen = np.sort(np.concatenate([uniform, rng.permutation(rest)[:clicks]]))
    numbers, inputs = request_inputs(examples, chosen)
    told = log_rows(out, name, numbers, spec)
    history = KnownClicks(out, items, told, publish_every, beside)
    drawn = set(uniform.tolist())
    rows, times = items.rows(told[ITEM].to_pylist()), told[TIME].cast(pa.int64()).to_pylist()
    return [
        PastRequest(Requester(True, Encoded(inputs.ids[n : n + 1], inputs.dense[n : n + 1]), *history.recent(n)),
                    int(rows[n]) if labels[place] > 0 else -1, place in drawn, times[n])
        for n, place in enumerate(chosen.tolist())
    ]


def request_inputs(examples: ExampleSet, chosen: np.ndarray) -> PastInputs:
    """Of the examples `chosen`, ascending, by their places among the row groups that are read."""
    rows, ids, dense, start = [], [], [], 0
    for batch in examples.batches(READ_ROWS):
        here = chosen[(chosen >= start) & (chosen < start + len(batch.row))] - start
        rows.append(batch.row.numpy()[here])
        ids.append(batch.request.ids.numpy()[here])
        dense.append(batch.request.dense.numpy()[here])
        start += len(batch.row)
    return PastInputs(np.concatenate(rows), Encoded(np.concatenate(ids), np.concatenate(dense)))


def log_rows(out: Artifacts, name: str, rows: np.ndarray, spec: FeatureSpec) -> pa.Table:
    """Item, time and, where the log has users, user of these examples of a window with times, in their order."""
    columns = [ROW, ITEM, TIME, *([USER] if spec.has_users else [])]
    table = events(out, columns, *window(out, name), ds.field(ROW).isin(pa.array(rows)))
    return table.take(pc.index_in(pa.array(rows), value_set=table[ROW].combine_chunks()))


class KnownClicks:
    """What each user had clicked, newest first, of clicks known by the publish before a request; `requests` with their
    TIME and, where the log has users, USER, rows of `items`."""

    def __init__(
        self, out: Artifacts, items: FeatureStore, requests: pa.Table, publish_every: int,
        beside: EventTables | None = None,
    ) -> None:
        times = requests[TIME].cast(pa.int64()).to_numpy()
        every = publish_every * 1_000_000
        self._times, self._beside = times, beside
        self._known_by = times - times % every if every else times
        self._users = requests[USER].to_pylist() if USER in requests.column_names else None
        self._of_user: dict[str, tuple[np.ndarray, np.ndarray, RecentEvents | None]] = {}
        if self._users is None:
            return
        theirs = (ds.field(LABEL) > 0) & ds.field(USER).isin(pa.array(sorted(set(self._users))))
        log = events(out, [ROW, USER, ITEM, TIME, LABEL, LABEL_TIME], None, _after(requests), theirs)
        told = beside and beside.of(log.num_rows, _told(out, log, list(beside.vocabularies)))
        rows, at = items.rows(log[ITEM].to_pylist()), log[TIME].cast(pa.int64()).to_numpy()
        known = np.maximum(log[LABEL_TIME].cast(pa.int64()).to_numpy(), at + 1)  # nobody knows of a click at its moment
        users = np.asarray(log[USER].to_pylist(), dtype=object)
        for user in set(users.tolist()):
            mine = np.flatnonzero(users == user)[::-1]
            self._of_user[user] = rows[mine], known[mine], told and told.at(mine)

    def recent(self, request: int) -> tuple[np.ndarray, RecentEvents | None]:
        """Rows, and what is told of them as of the request."""
        if self._users is None or self._users[request] not in self._of_user:
            return np.empty(0, dtype=np.int32), self._beside and self._beside.untold(0)
        rows, known, told = self._of_user[self._users[request]]
        places = np.flatnonzero(known <= self._known_by[request])[:RECENT]
        places = places[rows[places] >= 0]
        return rows[places], told and told.at(places)._replace(now=int(self._times[request]))


def _told(out: Artifacts, log: pa.Table, columns: list[str]) -> ToldEvents:
    """Of these rows, as the online tables tell it; OUT/features does not have all of it."""
    clean = ds.dataset(out.events, format="parquet", partitioning="hive", exclude_invalid_files=True)
    clicked = [CLICK_TIME] if CLICK_TIME in clean.schema.names else []
    found = clean.to_table(columns=[ROW, *clicked, *columns], filter=ds.field(ROW).isin(log[ROW].combine_chunks()))
    found = found.take(pc.index_in(log[ROW].combine_chunks(), value_set=found[ROW].combine_chunks()))
    at = log[TIME] if not clicked else pc.coalesce(found[CLICK_TIME], log[TIME])
    values = {name: found[name].cast(pa.string()).to_pylist() for name in columns}
    return ToldEvents(at.cast(pa.int64()).fill_null(0).to_numpy(), values)


def _after(requests: pa.Table) -> datetime:
    return pc.max(requests[TIME]).as_py()
