"""What people did, out of a run's clean events (OUT/ingest/events): the positives, cut where the run's windows lie.

An action counts for training when it happened, and was known, before the validation window; actions are in the order
of the clicks' own times where the log tells them, as the served lists of recent items are. Items that were not taken
before the validation window are unknown to a model and are no actions of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from contracts.artifacts import CLICK_TIME, ITEM, KNOWN, LABEL, LABEL_TIME, TIME, USER, Artifacts
from contracts.errors import DataError
from contracts.features.feature_spec import FIRST_ID, UNKNOWN
from contracts.features.vocabulary import Vocabulary
from contracts.windows import read_timed
from models.interactions.interactions import Interactions, offsets_of
from models.interactions.splits import Holdout, Split, first_takes, leave_one_out
from models.interactions.told_events import Told


class EventLog(NamedTuple):
    """`split.test` asks what validation asks: the test window is not read. `items`: keys by place; an item's id is its
    place plus 2. `columns`: the same of what is told of the actions beside it."""

    split: Split
    items: Vocabulary
    columns: Mapping[str, Vocabulary] = MappingProxyType({})


def read(out: Artifacts, repeat: bool, gaps: bool = False, columns: Sequence[str] = ()) -> EventLog:
    """With `repeat`, validation still asks for what a user had not taken before. `gaps`, `columns`: what models are
    told of the actions beside the items (models/interactions/told_events.py).

    A validation window without such actions is replaced by the last action of each user before it. Raises DataError
    where nobody took two items before the validation window.
    """
    start, end = read_timed(out.windows)["validation"]
    table = _positives(out, columns)
    micros = {name: table[name].cast(pa.int64()).to_numpy() for name in (TIME, KNOWN, LABEL_TIME)}
    known = np.maximum(np.maximum(micros[TIME] + 1, micros[KNOWN]), micros[LABEL_TIME])
    training, asked = known < _micros(start), (micros[TIME] >= _micros(start)) & (micros[TIME] < _micros(end))
    items = Vocabulary.of(table[ITEM].filter(pa.array(training)), "string")
    item = items.look_up_arrow(table[ITEM].combine_chunks(), "string")
    keep = (item != UNKNOWN) & (training | asked)
    users = pc.dictionary_encode(table[USER].combine_chunks()).indices.to_numpy()[keep]
    at = _clicked(table, micros[TIME])[keep]
    texts = {name: table[name].cast(pa.string()).combine_chunks() for name in columns}
    known_texts = {name: Vocabulary.of(values.filter(pa.array(training)), "string") for name, values in texts.items()}
    log, order = _log(users, item[keep].astype(np.int64), at, len(items) + UNKNOWN + 1)
    if gaps or columns:
        values = [known_texts[name].look_up_arrow(texts[name], "string")[keep][order] for name in columns]
        log = replace(log, told=Told(gaps, np.stack(values, 1).astype(np.int64) if values else
                                     np.zeros((len(order), 0), np.int64),
                                     tuple(len(known) + FIRST_ID for known in known_texts.values())))
    training = training[keep][order]
    if not (log.where(training).lengths > 1).any():
        raise DataError(f"{out.events}: nobody took two items before the validation window, so that there is no order "
                        "to learn from; widen the training window, or leave retrieve.channels out")
    return EventLog(_split(log, training), items, known_texts)


def _positives(out: Artifacts, columns: Sequence[str]) -> pa.Table:
    events = ds.dataset(out.events, format="parquet", partitioning="hive", exclude_invalid_files=True)
    clicked = [CLICK_TIME] if CLICK_TIME in events.schema.names else []
    taken = (ds.field(LABEL) > 0) & ds.field(USER).is_valid() & ds.field(ITEM).is_valid()
    missing = [name for name in columns if name not in events.schema.names]
    if missing:
        raise DataError(f"{out.events} has no column {missing[0]!r} of retrieve.events; run `sluice features` again")
    return events.to_table(columns=[USER, ITEM, TIME, KNOWN, LABEL_TIME, *clicked, *columns], filter=taken)


def _clicked(table: pa.Table, times: np.ndarray) -> np.ndarray:
    if CLICK_TIME not in table.column_names:
        return times
    told = table[CLICK_TIME].cast(pa.int64())
    return pc.coalesce(told, pa.chunked_array([pa.array(times)])).to_numpy()


def _log(users: np.ndarray, items: np.ndarray, times: np.ndarray, table: int) -> tuple[Interactions, np.ndarray]:
    """The log, and the order of the rows in it; files come in any order, so that ties go by item."""
    order = np.lexsort((items, times, users))
    lengths = np.bincount(users) if len(users) else np.zeros(0, np.int64)
    return Interactions(offsets_of(lengths), items[order], table, times[order]), order


def _split(log: Interactions, training: np.ndarray) -> Split:
    train = log.where(training)
    asked = Holdout(train, log.where(~training & first_takes(log)))
    if not len(asked.asked):
        return leave_one_out(train)
    return Split(train, asked, asked)


def _micros(moment: object) -> int:
    return int(pa.scalar(moment, pa.timestamp("us", "UTC")).value)
