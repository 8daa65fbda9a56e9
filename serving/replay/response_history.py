"""Reads the response log back: what the server answered between two instants, and by which bundle."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from contracts.artifacts import DAY
from contracts.errors import DataError
from serving.server.response_record import SCHEMA

# The caller's own doing; they say nothing about the bundle.
CALLERS_FAULT = ("INVALID_ARGUMENT", "CANCELLED")
_SCHEMA = SCHEMA.append(pa.field(DAY, pa.string()))
_DAYS = ds.partitioning(pa.schema([(DAY, pa.string())]), flavor="hive")


@dataclass(frozen=True)
class LoggedResponses:
    """Rows of the log by time, those that failed by the caller's fault left out."""

    table: pa.Table

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def of(self, version: str) -> LoggedResponses:
        """What one bundle answered."""
        return LoggedResponses(self.table.filter(pc.field("bundle_version") == version))

    @property
    def versions(self) -> list[str]:
        """In the order of their first answers."""
        return list(dict.fromkeys(self.table["bundle_version"].to_pylist()))

    @property
    def failed(self) -> np.ndarray:
        """bool [N]"""
        return pc.not_equal(self.table["status"], "OK").to_numpy(zero_copy_only=False)

    @property
    def milliseconds(self) -> np.ndarray:
        """float64, of the answers that came."""
        spent = self.table.filter(pc.field("status") == "OK")["microseconds"]
        return spent.to_numpy().astype(np.float64) / 1000


def read(folder: Path, since: datetime, until: datetime) -> LoggedResponses:
    """[since, until). Raises DataError when there is no such folder."""
    if not folder.is_dir():
        raise DataError(f"no response log at {folder}; `sluice serve ... --log-answers {folder}` writes one")
    first, last = since.astimezone(UTC).date().isoformat(), until.astimezone(UTC).date().isoformat()
    chosen = (
        (pc.field(DAY) >= first) & (pc.field(DAY) <= last)
        & (pc.field("time") >= pa.scalar(since, SCHEMA.field("time").type))
        & (pc.field("time") < pa.scalar(until, SCHEMA.field("time").type))
        & ~pc.field("status").isin(list(CALLERS_FAULT))
    )
    log = ds.dataset(folder, schema=_SCHEMA, format="parquet", partitioning=_DAYS, exclude_invalid_files=True)
    return LoggedResponses(log.to_table(columns=SCHEMA.names, filter=chosen).sort_by("time"))


def shown(answers: LoggedResponses, until: datetime, first_only: bool) -> pa.Table:
    """One row per shown item of the answers before `until`: request_id, user, time, item, probability.

    `first_only` keeps position 1, where probabilities are promised once positions have an effect.
    """
    table = answers.table.filter(pc.field("time") < pa.scalar(until, SCHEMA.field("time").type))
    parent = pc.list_parent_indices(table["items"])
    flat = {
        **{name: table[name].take(parent) for name in ("request_id", "user", "time")},
        "item": pc.list_flatten(table["items"]), "position": pc.list_flatten(table["positions"]),
        "probability": pc.list_flatten(table["probabilities"]),
    }
    rows = pa.table(flat)
    return rows.filter(pc.field("position") == 1) if first_only else rows
