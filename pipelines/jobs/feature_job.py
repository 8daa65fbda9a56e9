"""The job `sluice features`: ingest ▶ windows ▶ features ▶ fit ▶ examples ▶ parity sample ▶ online tables. For a log of
positives alone negatives are drawn before features are made.

Crosses that a search has found (OUT/crosses/crosses.json) are fields like the configured ones. `encode_again` takes
them in after the search: it fits their vocabularies and writes examples and parity rows anew, and nothing else.

With a day, exactly that day's partitions are made again, within the windows and with the spec of the last whole run.
With the encoding of another run or of a bundle nothing is fitted.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, TypeVar

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from contracts.artifacts import LABEL, USER, WINDOWS, Artifacts
from contracts.config.config import Config
from contracts.errors import DataError, OneClassError
from contracts.features import vocabulary
from contracts.features.feature_spec import FeatureSpec
from contracts.features.found_crosses import add_found_crosses
from contracts.features.vocabulary import Vocabulary
from contracts.progress import report
from contracts.summaries import summary
from contracts.summaries.features import ExampleRows, FeaturesSummary, OnlineTables, WindowRows
from contracts.windows import TimedWindows
from pipelines.encoding import examples, fit_spec, kept_encoding, parity_sample
from pipelines.encoding.example_figures import describe
from pipelines.encoding.training_window import days_of, window_rows, windowed, windowed_parts
from pipelines.engine.day_partitions import read_table, rows_in, staging_of
from pipelines.engine.session import BESIDE_ROWS, beside, session
from pipelines.features.online_tables import stage_online
from pipelines.features.prior_rate import prior_of_run
from pipelines.features.raw_features import build_features
from pipelines.ingest.ingest import checked_day, ingest
from pipelines.negatives.drawn_rows import draw_rows
from pipelines.windows import windows
from pipelines.windows.hashed_windows import HashedWindows

ENCODED_ROWS = 6_000_000  # that are sorted at once
T = TypeVar("T")


class PartTimes:
    """Reports the parts of the job as they start and keeps how long each one took."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def run(self, name: str, work: Callable[[], T]) -> T:
        """Returns what `work` does."""
        report(name)
        start = time.perf_counter()
        result = work()
        self.seconds[name] = round(time.perf_counter() - start, 3)
        return result


class Encoded(NamedTuple):
    """What encoding adds to the summary."""

    vocabularies: dict[str, int]
    examples: dict[str, ExampleRows]
    crosses: tuple[str, ...]
    crosses_digest: str | None
    parity_rows: int


def make_features(
    config: Config, data: str | Path | None, out: Artifacts, day: str | None = None, until: str | None = None,
    encoding: Path | None = None,
) -> FeaturesSummary:
    """Does the whole job; writes features/summary.json and returns it. `until`: as when that day ended; `encoding`: the
    one that is kept, None where one is fitted.

    Raises what its parts raise; ConfigError on a day that is none; OneClassError when training or validation has labels
    of one class or too few users; DataError when a day is asked for before there was a whole run, or its encoding has a
    found cross of a field that is gone; a whole run leaves such a cross out.
    """
    day, until = checked_day(config, day), checked_day(config, until)
    if day is not None and not out.encoding.exists():
        raise DataError(f"no spec at {out.encoding} to encode {day} with; run `sluice features` without --day first")
    times = PartTimes()
    needed = FeatureSpec.read(out.encoding).by_name if day is not None else ()
    config = add_found_crosses(config, out.crosses, needed)
    with session(config.spark, f"sluice features {config.name}", leaves_classes=True) as spark:
        ingested = times.run("ingest", lambda: ingest(spark, config, data, out, day, until))
        resolved = times.run("windows", lambda: _resolve(spark, config, out)) if day is None else None
        days = [day] if day else None
        alone = config.label.positives_only
        drawn = times.run("draw", lambda: draw_rows(spark, config, out, days)) if alone else None
        prior = times.run("prior", lambda: prior_of_run(spark, config, out, refit=day is None))
        with _online_tables(spark, config, out) as finish:  # a log that is refused leaves those of the last good one
            features = times.run("features", lambda: build_features(spark, config, out, days, prior))
            checked = _checked(spark, config, out, times) if day is None else None
            encoded = _encode(spark, config, out, day, times, kept=encoding)
            online = times.run("online", finish)
    made = FeaturesSummary(
        name=config.name, day=day, until=until, ingest=ingested, windows=resolved, drawn=drawn, features=features,
        online=online, check=checked, seconds=times.seconds, **encoded._asdict(),
    )
    summary.write(out.features, made)
    return made


@contextmanager
def _online_tables(spark: SparkSession, config: Config, out: Artifacts) -> Iterator[Callable[[], OnlineTables | None]]:
    """What puts the online tables in their places: those of a log of at most BESIDE_ROWS are written aside beside what
    goes on inside.
    """
    if not (config.log.user_id or config.log.item_id):
        yield lambda: None
        return
    try:
        with beside(lambda: stage_online(spark, config, out), rows_in(out.events) <= BESIDE_ROWS) as staged:
            yield lambda: staged().publish()
    finally:
        for folder in (out.online_users, out.online_items):
            shutil.rmtree(staging_of(folder), ignore_errors=True)


def encode_again(config: Config, out: Artifacts) -> FeaturesSummary:
    """Examples and parity rows with the crosses found since; the fields keep their encoding. Returns the new summary.

    Raises DataError where there was no whole run before.
    """
    known = summary.read(out.features, FeaturesSummary)
    if known is None or not out.encoding.exists():
        raise DataError(f"no features at {out.features} to encode; run `sluice features` first")
    times = PartTimes()
    crossed = add_found_crosses(config, out.crosses)
    with session(crossed.spark, f"sluice features {crossed.name}") as spark:
        checked = _checked(spark, crossed, out, times)
        encoded = _encode(spark, crossed, out, None, times, keep_fields=True)
    seconds = {**known.seconds, **{f"{name} again": spent for name, spent in times.seconds.items()}}
    made = known.model_copy(update={**encoded._asdict(), "check": checked, "seconds": seconds})
    summary.write(out.features, made)
    return made


def has_found_crosses(config: Config, out: Artifacts) -> bool:
    """Whether the written examples hold exactly the crosses that the configuration and the search ask for.

    The summary says so, which is written last: encoding and examples may be apart where a run was killed.
    """
    crossed = add_found_crosses(config, out.crosses)
    wanted, encoded = ({field.name: (field.parts, field.representation) for field in fields if field.kind == "cross"}
                       for fields in (crossed.fields, FeatureSpec.read(out.encoding).fields))
    known = summary.read(out.features, FeaturesSummary)
    if wanted != encoded or known is None:
        return wanted == encoded
    return encoded.keys() == set(known.crosses) and known.crosses_digest in (None, _crosses_digest(crossed))


def _crosses_digest(config: Config) -> str:
    """Changes with all that crosses are fitted by, and with their order."""
    crosses = [field.model_dump(mode="json") for field in config.fields if field.kind == "cross"]
    return hashlib.sha256(json.dumps(crosses, sort_keys=True).encode()).hexdigest()


def _resolve(spark: SparkSession, config: Config, out: Artifacts) -> dict[str, tuple[str, str]] | dict[str, int]:
    """Writes the windows; returns [start, end) of each, or its rows where the log has no times."""
    if config.log.event_time is None:
        hashed = HashedWindows.of(config)
        counted = hashed.count(read_table(spark, out.events))
        hashed.write(out.windows)
        return counted
    resolved = windows.resolve(read_table(spark, out.events), config)
    TimedWindows(spans=resolved).write(out.windows)
    return {name: (start.isoformat(), end.isoformat()) for name, (start, end) in resolved.items()}


def _checked(spark: SparkSession, config: Config, out: Artifacts, times: PartTimes) -> dict[str, WindowRows]:
    """Of the whole log, as `check`."""
    return times.run("check", lambda: check(windowed(spark, config, out)))


def _encode(
    spark: SparkSession, config: Config, out: Artifacts, day: str | None, times: PartTimes, keep_fields: bool = False,
    kept: Path | None = None,
) -> Encoded:
    digest = None
    if day:
        spec, known = FeatureSpec.read(out.encoding), summary.kept(out.features, FeaturesSummary)
        digest = known.crosses_digest if known else None
    elif kept:
        spec = kept_encoding.keep(kept, config, out)
    else:
        digest = _crosses_digest(config)
        spec = times.run("fit", lambda: fit_spec.fit(spark, config, out, keep_fields))
    vocabularies = vocabulary.read_all(out.encoding)
    parts: Iterable[DataFrame] = windowed_parts(spark, config, out, ENCODED_ROWS)
    if day:
        parts = [windowed(spark, config, out, [day])]

    def sampled() -> int:
        return _parity(spark, config, out, day, spec, vocabularies)

    read = out.features if day is None else out.features / f"day={day}"
    with beside(sampled, rows_in(read) <= BESIDE_ROWS) as parity:
        changed = times.run("examples", lambda: examples.write(parts, spec, vocabularies, config, out, day))
        described = describe(spark, {window: out.examples(window) for window in WINDOWS}, changed)
        parity_rows = times.run("parity", parity)
    return Encoded(
        vocabularies={name: len(keys) for name, keys in vocabularies.items()}, examples=described,
        crosses=tuple(field.name for field in spec.fields if field.kind == "cross"), crosses_digest=digest,
        parity_rows=parity_rows,
    )


def _parity(
    spark: SparkSession, config: Config, out: Artifacts, day: str | None, spec: FeatureSpec,
    vocabularies: Mapping[str, Vocabulary],
) -> int:
    """Made anew unless the day is none of the test window's; returns the number of its rows."""
    if day is not None and day not in days_of(out, "test") and out.parity.exists():
        return rows_in(out.parity)
    test = window_rows(spark, config, out, "test")
    return parity_sample.write(test, spec, vocabularies, config.serve.parity_rows, out)


def check(rows: DataFrame) -> dict[str, WindowRows]:
    """Rows, positives and users per window. Raises OneClassError where training or validation teaches nothing."""
    users = F.countDistinct(USER) if USER in rows.columns else F.lit(None).cast("bigint")
    found = rows.groupBy(windows.WINDOW).agg(F.count("*").alias("rows"), F.sum(LABEL).cast("bigint").alias("positives"),
                                             users.alias("users")).collect()
    counts = {
        row[windows.WINDOW]: WindowRows(rows=row["rows"], positives=row["positives"], users=row["users"])
        for row in sorted(found, key=lambda row: row[windows.WINDOW] or "") if row[windows.WINDOW]
    }
    for window in ("train", "validation"):
        _check_labels(window, counts.get(window, WindowRows(rows=0, positives=0)))
    if USER in rows.columns and (counts["train"].users or 0) < 2:
        raise OneClassError("window 'train' has a single user; check log.user_id, leave it out, or bring a longer log")
    return counts


def _check_labels(window: str, count: WindowRows) -> None:
    if 0 < count.positives < count.rows:
        return
    raise OneClassError(
        f"window {window!r} has {count.rows} rows, {count.positives} of them positive; both classes are needed: "
        "check the label, widen the window, or bring a longer log"
    )
