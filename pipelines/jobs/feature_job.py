"""The step `sluice features`: ingest ▶ windows ▶ features ▶ fit ▶ examples ▶ parity sample ▶ online tables.

Crosses that a search has found (OUT/crosses/crosses.json) are fields like the configured ones. `encode_again` takes
them in after the search: it fits their vocabularies and writes examples and parity rows anew, and nothing else.

With a day, exactly that day's partitions are made again, within the windows and with the spec of the last whole run.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from contracts import summary
from contracts.artifacts import DAY, LABEL, USER, WINDOWS, Artifacts
from contracts.config.config import Config
from contracts.errors import DataError, OneClassError
from contracts.features import vocabulary
from contracts.features.feature_spec import FeatureSpec
from contracts.features.found_crosses import with_crosses
from contracts.windows import TimedWindows
from pipelines.encoding import examples, fit_spec, parity_sample
from pipelines.encoding.training_window import windowed
from pipelines.engine.content_hash import content_hash
from pipelines.engine.session import open_session
from pipelines.features.online_tables import write_online
from pipelines.features.raw_features import build_features
from pipelines.ingest.ingest import ingest
from pipelines.windows import windows
from pipelines.windows.hashed_windows import HashedWindows

Progress = Callable[[str], None]


class Steps:
    """Names the steps as they start and keeps what each one says and how long it took."""

    def __init__(self, on_progress: Progress | None) -> None:
        self.on_progress = on_progress
        self.figures: dict[str, Any] = {}
        self.seconds: dict[str, float] = {}

    def run(self, name: str, work: Callable[[], Any]) -> Any:
        if self.on_progress:
            self.on_progress(name)
        start = time.perf_counter()
        answer = work()
        self.seconds[name] = round(time.perf_counter() - start, 3)
        if isinstance(answer, Mapping):
            self.figures[name] = answer
        return answer


@contextmanager
def session(config: Config) -> Iterator[SparkSession]:
    """The active session, or one that is opened for the purpose and stopped at the end."""
    active = SparkSession.getActiveSession()
    spark = active or open_session(config.spark, f"sluice features {config.name}")
    try:
        yield spark
    finally:
        if active is None:
            spark.stop()


def run(
    config: Config, data: Path | None, out: Artifacts, day: str | None = None, on_progress: Progress | None = None,
    until: str | None = None,
) -> dict[str, Any]:
    """Does the whole step and writes features/summary.json; answers it. `until`: as when that day ended.

    Raises what the steps raise; OneClassError when training or validation has labels of one class or too few users;
    DataError when a day is asked for before there was a whole run.
    """
    if day is not None and not out.encoding.exists():
        raise DataError(f"no spec at {out.encoding} to encode {day} with; run `sluice features` without --day first")
    steps = Steps(on_progress)
    config = with_crosses(config, out.crosses)
    with session(config) as spark:
        steps.run("ingest", lambda: ingest(spark, config, data, out, day, until))
        if day is None:
            steps.run("windows", lambda: _resolve(spark, config, out))
        steps.run("features", lambda: build_features(spark, config, out, [day] if day else None))
        _encode(spark, config, out, day, steps)
        if config.log.user_id or config.log.item_id:
            steps.run("online", lambda: write_online(spark, config, out))
    answer = {"name": config.name, "day": day, "until": until, **steps.figures, "seconds": steps.seconds}
    summary.write(out.features, answer)
    return answer


def encode_again(config: Config, out: Artifacts, on_progress: Progress | None = None) -> dict[str, Any]:
    """Examples and parity rows with the crosses found since; the fields keep their encoding. Answers the new summary.

    Raises DataError where there was no whole run before.
    """
    known = summary.read(out.features)
    if not known or not out.encoding.exists():
        raise DataError(f"no features at {out.features} to encode; run `sluice features` first")
    steps = Steps(on_progress)
    crossed = with_crosses(config, out.crosses)
    with session(crossed) as spark:
        _encode(spark, crossed, out, None, steps, keep_fields=True)
    seconds = {**known["seconds"], **{f"{name} again": spent for name, spent in steps.seconds.items()}}
    answer = {**known, **steps.figures, "seconds": seconds}
    summary.write(out.features, answer)
    return answer


def has_found_crosses(config: Config, out: Artifacts) -> bool:
    """Whether the written examples hold exactly the crosses that the configuration and the search ask for.

    The summary says so, which is written last: encoding and examples may be apart where a run was killed.
    """
    wanted = {one.name for one in with_crosses(config, out.crosses).fields if one.kind == "cross"}
    encoded = {field.name for field in FeatureSpec.read(out.encoding).fields if field.kind == "cross"}
    return wanted == encoded == set(summary.read(out.features).get("crosses", encoded))


def _resolve(spark: SparkSession, config: Config, out: Artifacts) -> dict[str, Any]:
    """[start, end] of each window, or its rows where the log has no times."""
    if config.log.event_time is None:
        hashed = HashedWindows.of(config)
        counted = hashed.count(spark.read.parquet(str(out.events)))
        hashed.write(out.windows)
        return counted
    resolved = windows.resolve(spark.read.parquet(str(out.events)), config)
    TimedWindows(spans=resolved).write(out.windows)
    return {name: [start.isoformat(), end.isoformat()] for name, (start, end) in resolved.items()}


def _encode(
    spark: SparkSession, config: Config, out: Artifacts, day: str | None, steps: Steps, keep_fields: bool = False
) -> None:
    rows = windowed(spark, config, out)
    if day is None:
        steps.run("check", lambda: check(rows))
    spec = FeatureSpec.read(out.encoding) if day else steps.run(
        "fit", lambda: fit_spec.fit(spark, config, out, keep_fields))
    vocabularies = vocabulary.read_all(out.encoding)
    steps.figures["vocabularies"] = {name: len(keys) for name, keys in vocabularies.items()}
    changed = steps.run("examples", lambda: examples.write(rows, spec, vocabularies, config, out, day))
    steps.figures["examples"] = {window: describe(spark, out, window) | {"written": changed[window]}
                                 for window in WINDOWS}
    steps.figures["crosses"] = [field.name for field in spec.fields if field.kind == "cross"]
    steps.figures["parity_rows"] = steps.run(
        "parity", lambda: parity_sample.write(rows, spec, vocabularies, config.serve.parity_rows, out)
    )


def check(rows: DataFrame) -> dict[str, dict[str, int]]:
    """Rows, positives and users per window. Raises OneClassError where training or validation teaches nothing."""
    users = F.countDistinct(USER) if USER in rows.columns else F.lit(None).cast("bigint")
    found = rows.groupBy(windows.WINDOW).agg(F.count("*").alias("rows"), F.sum(LABEL).cast("bigint").alias("positives"),
                                             users.alias("users")).collect()
    counts = {row[windows.WINDOW]: row.asDict() for row in found if row[windows.WINDOW]}
    for window in ("train", "validation"):
        _check_labels(window, counts.get(window, {"rows": 0, "positives": 0}))
    if USER in rows.columns and counts["train"]["users"] < 2:
        raise OneClassError("window 'train' has a single user; check log.user_id, leave it out, or bring a longer log")
    return {name: {key: count[key] for key in ("rows", "positives", "users") if count[key] is not None}
            for name, count in sorted(counts.items())}


def _check_labels(window: str, count: Mapping[str, int]) -> None:
    if 0 < count["positives"] < count["rows"]:
        return
    raise OneClassError(
        f"window {window!r} has {count['rows']} rows, {count['positives']} of them positive; both classes are needed: "
        "check the label, widen the window, or bring a longer log"
    )


def describe(spark: SparkSession, out: Artifacts, window: str) -> dict[str, Any]:
    written = spark.read.parquet(str(out.examples(window)))
    rows, positives = written.agg(F.count("*"), F.sum(LABEL)).collect()[0]
    days = written.select(DAY).distinct().count()
    return {"rows": rows, "positives": int(positives or 0), "days": days, "content_hash": content_hash(written)}
