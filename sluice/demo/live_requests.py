"""Real gRPC requests from users of the test window, each with the context of one of their own events."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds

from contracts.artifacts import ROW, USER, Artifacts
from contracts.features.feature_spec import FeatureSpec
from contracts.progress import counted
from contracts.summaries.demo import ServingFigures
from serving.request.query import ContextValue
from serving.server.client import RankingClient
from serving.server.connection import RankingFailed


@dataclass(frozen=True)
class Visit:
    """Who asks, and the context fields that the request carries."""

    user: str
    context: dict[str, ContextValue]


@dataclass(frozen=True)
class Served:
    """Answered item ids per visit (None where the call failed), and latencies in milliseconds."""

    slates: list[list[str] | None]
    milliseconds: list[float]
    errors: list[str]


def sample_visits(out: Artifacts, spec: FeatureSpec, count: int, seed: int) -> list[Visit]:
    """One event of each of `count` users, users drawn without replacement from the test window."""
    table = _impressions(out, spec, "test")
    users = np.asarray(table[USER].to_pylist())
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(users))
    _, first = np.unique(users[order], return_index=True)
    return _visits(table.take(rng.permutation(order[first])[:count]))


def sample_impressions(out: Artifacts, spec: FeatureSpec, window: str, count: int, seed: int) -> list[Visit]:
    """Of a window, drawn without replacement: who comes often asks often."""
    table = _impressions(out, spec, window)
    return _visits(table.take(np.random.default_rng(seed).permutation(table.num_rows)[:count]))


def _impressions(out: Artifacts, spec: FeatureSpec, window: str) -> pa.Table:
    """Their users and contexts, by the rows' numbers: the order of files is the engine's."""
    context = [field.name for field in spec.of_side("context")]
    days = ds.dataset(out.examples(window), partitioning="hive").to_table(columns=["day"])["day"].unique()
    found = ds.dataset(out.features, format="parquet", partitioning="hive", exclude_invalid_files=True).to_table(
        columns=[USER, *context, ROW], filter=ds.field("day").isin(days)
    )
    return found.sort_by(ROW).drop_columns([ROW])


def _visits(table: pa.Table) -> list[Visit]:
    return [Visit(row.pop(USER), {name: value for name, value in row.items() if value is not None})
            for row in table.to_pylist()]


def send(client: RankingClient, visits: Sequence[Visit], *, skip_rerank: bool) -> Served:
    """One after the other, each with a deadline of a second."""
    slates: list[list[str] | None] = []
    milliseconds, errors = [], []
    for visit in counted("requests without re-ranking" if skip_rerank else "requests", visits):
        started = time.perf_counter()
        try:
            answer = client.rank(visit.user, context=visit.context, skip_rerank=skip_rerank)
            slates.append([item.item_id for item in answer.items])
        except RankingFailed as error:
            slates.append(None)
            errors.append(str(error))
        milliseconds.append((time.perf_counter() - started) * 1000)
    return Served(slates, milliseconds, errors)


def figures(batches: Sequence[Served]) -> ServingFigures:
    """Of all requests together."""
    times = np.concatenate([batch.milliseconds for batch in batches])
    return ServingFigures(
        requests=len(times), errors=sum(len(batch.errors) for batch in batches),
        p50_ms=round(float(np.percentile(times, 50)), 3), p99_ms=round(float(np.percentile(times, 99)), 3),
    )
