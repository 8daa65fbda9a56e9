"""Reads the response log back: what the server answered between two instants, and by which bundle."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from contracts.artifacts import DAY
from contracts.errors import DataError
from serving.request.query import MORE_COMES, StageStatus
from serving.response_log import journal
from serving.response_log.response_record import LOST, SCHEMA

# The caller's own doing; they say nothing about the bundle.
CALLERS_FAULT = ("INVALID_ARGUMENT", "CANCELLED")
RETRIEVE = "retrieve"
REFUSED = "RESOURCE_EXHAUSTED"  # there was too much to do, which says more about the load than about the bundle
_SCHEMA = SCHEMA.append(pa.field(DAY, pa.string()))
JOURNALS = f"{DAY}=*/.*{journal.SUFFIX}"
EVERY = pc.scalar(True)
_DAYS = ds.partitioning(pa.schema([(DAY, pa.string())]), flavor="hive")


@dataclass(frozen=True)
class LoggedResponses:
    """Rows of the log by time, those that failed by the caller's fault left out; `lost` calls by bundle have no row."""

    table: pa.Table
    lost: Mapping[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def of(self, version: str) -> LoggedResponses:
        """What one bundle answered."""
        return LoggedResponses(self.table.filter(pc.field("bundle_version") == version),
                               {version: self.lost.get(version, 0)})

    @property
    def versions(self) -> list[str]:
        """In the order of their first answers."""
        return list(dict.fromkeys(self.table["bundle_version"].to_pylist()))

    @property
    def refused(self) -> np.ndarray:
        """bool [calls]: there was too much to do. The second slate of a request is no call, and a row may stand for
        several."""
        return np.repeat(_is(self.table, REFUSED), _calls(self.table))

    @property
    def failed(self) -> np.ndarray:
        """bool [calls that were not refused]."""
        return np.repeat(~_is(self.table, "OK"), _calls(self.table))[~self.refused]

    @property
    def failures(self) -> dict[str, int]:
        """Failed calls by status, most first."""
        found = Counter[str]()
        for status, calls in zip(self.table["status"].to_pylist(), _calls(self.table).tolist(), strict=True):
            found[status] += calls
        return {status: calls for status, calls in found.most_common() if status not in ("OK", REFUSED)}

    @property
    def incomplete_retrieval(self) -> np.ndarray:
        """bool, of the answers that came and tell of retrieval: a channel was left out of it, or all but popularity.
        Those that went without because more came than could be answered say no more of the bundle than refusals do."""
        came = self.table.filter(pc.field("status") == "OK")
        columns = (came[name].to_pylist() for name in ("stages", "stage_statuses", "stage_causes"))
        told = (dict(zip(names or (), zip(of or (), causes or (), strict=True), strict=True))
                for names, of, causes in zip(*columns, strict=True))
        return np.array([one[RETRIEVE][0] != StageStatus.COMPLETE.value for one in told
                         if RETRIEVE in one and one[RETRIEVE][1] != MORE_COMES], dtype=bool)

    @property
    def milliseconds(self) -> np.ndarray:
        """float64, of the answers that came."""
        spent = self.table.filter(pc.field("status") == "OK")["microseconds"]
        return spent.to_numpy().astype(np.float64) / 1000


def read(folder: Path, since: datetime, until: datetime) -> LoggedResponses:
    """[since, until), to the last second: journals are read as well. Raises DataError when there is no such folder."""
    if not folder.is_dir():
        raise DataError(f"no response log at {folder}; `sluice serve ... --log-answers {folder}` writes one")
    first, last = since.astimezone(UTC).date().isoformat(), until.astimezone(UTC).date().isoformat()
    chosen = (
        (pc.field("time") >= pa.scalar(since, SCHEMA.field("time").type))
        & (pc.field("time") < pa.scalar(until, SCHEMA.field("time").type))
        & ~pc.field("status").isin(list(CALLERS_FAULT))
    )
    found = rows(folder, first, last, chosen)
    gone = pc.equal(found["status"], LOST)
    lost = Counter[str]()
    for row in found.filter(gone).select(["bundle_version", "calls"]).to_pylist():
        lost[row["bundle_version"]] += row["calls"]
    return LoggedResponses(found.filter(pc.invert(gone)).sort_by("time"), lost)


def rows(folder: Path, first: str = "", last: str = "9", chosen: pc.Expression = EVERY) -> pa.Table:
    """Of the days [first, last], as they are in files and in journals, in no order. A journal that has become a file
    before the files were listed is read there."""
    held = {path: pa.Table.from_batches(_batches(path), SCHEMA) for path in list(folder.glob(JOURNALS))
            if first <= _day(path) <= last}
    files = ds.dataset(folder, schema=_SCHEMA, format="parquet", partitioning=_DAYS, exclude_invalid_files=True)
    listed = {Path(name) for name in files.files}
    found = [files.to_table(columns=SCHEMA.names, filter=(pc.field(DAY) >= first) & (pc.field(DAY) <= last) & chosen)]
    found += [table.filter(chosen) for path, table in held.items() if journal.published(path) not in listed]
    return pa.concat_tables(found)


def _day(path: Path) -> str:
    return path.parent.name.partition("=")[2]


def _prices(rows: pa.Table) -> pa.Array:
    """One for each shown item; files from before there was the column have none."""
    nothing = pa.array([[None] * count for count in pc.list_value_length(rows["items"]).to_pylist()],
                       SCHEMA.field("prices").type)
    return pc.list_flatten(pc.coalesce(rows["prices"].combine_chunks(), nothing))


def _batches(path: Path) -> list[pa.RecordBatch]:
    try:
        return list(journal.batches(path))
    except FileNotFoundError:
        return []


def _is(rows: pa.Table, status: str) -> np.ndarray:
    return np.asarray(pc.equal(rows["status"], status).to_numpy(), dtype=bool)


def _calls(rows: pa.Table) -> np.ndarray:
    """int64; 1 in files from before there was the column."""
    return pc.fill_null(rows["calls"], 1).to_numpy()


def shown(answers: LoggedResponses, until: datetime, first_only: bool) -> pa.Table:
    """One row per shown item of the answers before `until`: request_id, user, time, item, position, probability, and
    the price per click, null where there was no auction.

    `first_only` keeps position 1, where probabilities are promised once positions have an effect.
    """
    table = answers.table.filter(pc.field("time") < pa.scalar(until, SCHEMA.field("time").type))
    parent = pc.list_parent_indices(table["items"])
    flat = {
        **{name: table[name].take(parent) for name in ("request_id", "user", "time")},
        "item": pc.list_flatten(table["items"]), "position": pc.list_flatten(table["positions"]),
        "probability": pc.list_flatten(table["probabilities"]),
        "price": _prices(table),
    }
    rows = pa.table(flat)
    return rows.filter(pc.field("position") == 1) if first_only else rows
