"""The job `sluice quality`: profiles the days that are new or have changed, and judges the last one, or a given one.

OUT/quality/day=D/profile.json is kept with the content hash of the day it describes; a day that was refused is no
history for the days after it until it is judged anew and passes.
"""

from __future__ import annotations

import json
import time
from pathlib import Path

from pydantic import BaseModel, ConfigDict
from pyspark.sql import SparkSession

from contracts.artifacts import DAY, Artifacts
from contracts.atomic_write import write_json
from contracts.config.config import Config
from contracts.errors import DataError
from contracts.progress import counted
from contracts.summaries import summary
from contracts.summaries.quality import Finding, QualitySummary
from pipelines.engine.content_hash import content_hash
from pipelines.engine.day_partitions import read_table
from pipelines.engine.session import session
from pipelines.quality.day_profile import DayProfile, profile
from pipelines.quality.quality_limits import evaluate, sentence

PROFILE = "profile.json"


class KeptProfile(BaseModel):
    """`content_hash` of the day's features that the profile describes."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    content_hash: str
    profile: DayProfile


def evaluate_day(config: Config, out: Artifacts, day: str | None = None) -> QualitySummary:
    """Returns what it found of the day, which OUT/quality/day=D/summary.json keeps; refusing is the caller's.

    Raises DataError without features, without times, or of a day that is not there.
    """
    began = time.perf_counter()
    days = sorted(path.name.removeprefix(f"{DAY}=") for path in out.features.glob(f"{DAY}=*"))
    if not days or config.log.event_time is None:
        raise DataError(f"{out.features} holds no days to judge; run `sluice features` on a log with times first")
    chosen = day or days[-1]
    if chosen not in days:
        raise DataError(f"{out.features} has no day {chosen}; it has {days[0]} to {days[-1]}")
    with session(config.spark, f"sluice quality {config.name}") as spark:
        profiles = {name: _profiled(spark, config, out, name)
                    for name in counted("days", [name for name in days if name <= chosen])}
    history = [earlier for name, earlier in profiles.items() if name < chosen and not _was_refused(out, name)]
    findings = evaluate(profiles[chosen], history, config.quality)
    made = _summary(chosen, findings, [earlier.day for earlier in history], time.perf_counter() - began)
    summary.write(folder_of(out, chosen), made)
    return made


def folder_of(out: Artifacts, day: str) -> Path:
    """Where the day's profile, summary and picture lie."""
    return out.quality / f"{DAY}={day}"


def read_profile(out: Artifacts, day: str) -> DayProfile:
    """Raises DataError where the day has none, or a damaged one."""
    kept = _kept(out, day)
    if kept is None:
        raise DataError(f"{folder_of(out, day)} has no profile; run `sluice quality` first")
    return kept.profile


def _kept(out: Artifacts, day: str) -> KeptProfile | None:
    path = folder_of(out, day) / PROFILE
    try:
        return KeptProfile.model_validate(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else None
    except ValueError as error:
        raise DataError(f"{path} is damaged ({str(error).splitlines()[0]}); remove it and run again") from None


def _profiled(spark: SparkSession, config: Config, out: Artifacts, day: str) -> DayProfile:
    """The kept profile where the day has not changed since, else a new one."""
    frame = read_table(spark, out.features / f"{DAY}={day}")
    features = {name: field.kind for field in config.fields for name in field.features() if name in frame.columns}
    kept, now = _kept(out, day), content_hash(frame)
    if kept and kept.content_hash == now:
        return kept.profile
    numeric = {name for name, kind in features.items() if kind in ("numeric", "counter")}
    made = KeptProfile(content_hash=now, profile=profile(frame, day, list(features), numeric))
    write_json(folder_of(out, day) / PROFILE, made.model_dump(mode="json"), indent=None)
    return made.profile


def _was_refused(out: Artifacts, day: str) -> bool:
    known = summary.read(folder_of(out, day), QualitySummary)
    return known is not None and bool(known.refused)


def _summary(day: str, findings: list[Finding], history: list[str], seconds: float) -> QualitySummary:
    refused = [finding for finding in findings if finding.refused]
    return QualitySummary(
        day=day, history=tuple(history), judged=sum(finding.high is not None for finding in findings),
        refused=tuple(sentence(finding) for finding in refused),
        columns=tuple(sorted({finding.column for finding in refused if finding.column})), figures=tuple(findings),
        seconds=round(seconds, 2),
    )
