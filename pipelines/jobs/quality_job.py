"""The step `sluice quality`: profiles the days that are new or have changed, and judges the last one, or a given one.

OUT/quality/day=D/profile.json is kept with the content hash of the day it describes; a day that was refused is no
history for the days after it until it is judged anew and passes.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from contracts import summary
from contracts.artifacts import DAY, Artifacts
from contracts.config.config import Config
from contracts.errors import DataError
from contracts.features.found_crosses import with_crosses
from pipelines.engine.content_hash import content_hash
from pipelines.jobs.feature_job import Progress, session
from pipelines.quality.day_profile import DayProfile, profile
from pipelines.quality.quality_limits import Finding, judge

PROFILE = "profile.json"


def run(config: Config, out: Artifacts, day: str | None = None, on_progress: Progress | None = None) -> dict[str, Any]:
    """Answers the verdict of the day, which OUT/quality/day=D/summary.json keeps; refusing is the caller's.

    Raises DataError without features, without times, or of a day that is not there.
    """
    config = with_crosses(config, out.crosses)
    days = sorted(path.name.removeprefix(f"{DAY}=") for path in out.features.glob(f"{DAY}=*"))
    if not days or config.log.event_time is None:
        raise DataError(f"{out.features} holds no days to judge; run `sluice features` on a log with times first")
    chosen = day or days[-1]
    if chosen not in days:
        raise DataError(f"{out.features} has no day {chosen}; it has {days[0]} to {days[-1]}")
    with session(config) as spark:
        profiles = {one: _profiled(spark, config, out, one, on_progress) for one in days if one <= chosen}
    history = [found for one, found in profiles.items() if one < chosen and not _was_refused(out, one)]
    findings = judge(profiles[chosen], history, config.quality)
    verdict = _verdict(chosen, findings, [one.day for one in history])
    summary.write(folder_of(out, chosen), verdict)
    return verdict


def folder_of(out: Artifacts, day: str) -> Path:
    return out.quality / f"{DAY}={day}"


def read_profile(out: Artifacts, day: str) -> DayProfile:
    stored = json.loads((folder_of(out, day) / PROFILE).read_text(encoding="utf-8"))
    return DayProfile.model_validate(stored["profile"])


def _profiled(
    spark: SparkSession, config: Config, out: Artifacts, day: str, on_progress: Progress | None
) -> DayProfile:
    """As kept, where the day has not changed since."""
    frame = spark.read.parquet(str(out.features)).withColumn(DAY, F.col(DAY).cast("string")).where(F.col(DAY) == day)
    features = {name: one.kind for one in config.fields for name in one.features() if name in frame.columns}
    frame = frame.drop(DAY)
    kept, now = folder_of(out, day) / PROFILE, content_hash(frame)
    if kept.exists() and json.loads(kept.read_text(encoding="utf-8"))["content_hash"] == now:
        return read_profile(out, day)
    if on_progress:
        on_progress(day)
    numeric = {name for name, kind in features.items() if kind in ("numeric", "counter")}
    found = profile(frame, day, list(features), numeric)
    kept.parent.mkdir(parents=True, exist_ok=True)
    aside = kept.with_name(f".{PROFILE}")
    aside.write_text(json.dumps({"content_hash": now, "profile": found.model_dump()}), encoding="utf-8")
    aside.replace(kept)
    return found


def _was_refused(out: Artifacts, day: str) -> bool:
    return bool(summary.read(folder_of(out, day)).get("refused"))


def _verdict(day: str, findings: list[Finding], history: list[str]) -> dict[str, Any]:
    refused = [one for one in findings if one.refused]
    return {
        "day": day, "history": history, "judged": sum(one.high is not None for one in findings),
        "refused": [one.sentence for one in refused], "columns": sorted({one.column for one in refused if one.column}),
        "figures": [asdict(one) for one in findings],
    }
