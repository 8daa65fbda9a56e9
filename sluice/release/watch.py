"""`sluice watch`: what the champion answered and what was clicked of it, against limits; rolls back where it may."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow.compute as pc

from contracts.config.config import Config
from contracts.errors import BundleError, ConfigError, DataError
from contracts.release.watch import FOLDER, WatchFigure, WatchSummary
from contracts.summaries import summary
from models.tracking.bundle_registry import CHAMPION, REPLACED, BundleRegistry, registry_uri
from serving.replay import response_history
from serving.replay.response_history import LoggedResponses
from sluice.release import applied_delta, click_log, registration, watch_figures
from sluice.release.applied_delta import AppliedDelta


@dataclass(frozen=True)
class Watched:
    """What is watched, where. `clicks` None: the configured table; `version` None: the registry's champion; `applied`:
    the bundle that a delta made of another in its folder."""

    out: Path
    answers: Path
    clicks: Path | None = None
    data: str | Path | None = None
    since: datetime | None = None
    until: datetime | None = None
    registry: str | None = None
    version: str | None = None
    applied: AppliedDelta | None = None


def watch(config: Config, watched: Watched, roll_back: bool = False) -> WatchSummary:
    """Evaluates and writes OUT/watch, which it returns. `reasons` not empty: the champion should go back.

    Raises DataError without an response log; BundleError without a champion, when there is nothing to go back to, or
    where the folder does not hold what the delta leads to.
    """
    until = watched.until or datetime.now(UTC)
    since = watched.since or until - timedelta(seconds=config.watch.span)
    if since >= until:
        raise ConfigError(f"the stretch to watch is empty: {since.isoformat()} is not before {until.isoformat()}")
    version, before = _versions(config, watched)
    log = response_history.read(watched.answers, since, until)
    before = before or _served_before(log, version)
    figures, missing = _figures(config, watched, log, version, before, until)
    verdict = WatchSummary(
        bundle=version, previous=before, since=since.isoformat(), until=until.isoformat(),
        answers=len(log.of(version)), figures=tuple(figures), not_judged=tuple(missing),
        reasons=tuple(figure.sentence for figure in figures if figure.against), settings=config.watch,
    )
    summary.write(watched.out / FOLDER, verdict)
    if verdict.reasons and roll_back:
        done = (applied_delta.revert(watched.applied, version) if watched.applied
                else registration.rollback(config.name, registry_uri(watched.registry, watched.out), version))
        verdict = verdict.model_copy(update={"roll_back": done})
        summary.write(watched.out / FOLDER, verdict)
    return verdict


def lines(verdict: WatchSummary) -> list[str]:
    """The verdict as people read it."""
    text = [f"{verdict.bundle}: {verdict.answers} answers from {verdict.since} to {verdict.until}"]
    text += [f"{'WRONG' if figure.against else 'fine '}  {figure.sentence}" for figure in verdict.figures]
    text += [f"       {sentence}" for sentence in verdict.not_judged]
    back = verdict.roll_back
    if back:
        text.append(f"champion is {back.champion}" + ("" if back.rolled_back else " by now; nothing was changed"))
    return text


def _versions(config: Config, watched: Watched) -> tuple[str, str | None]:
    """The bundle that is watched, and the one that it replaced where registry or delta say so."""
    if watched.applied:
        return applied_delta.versions(watched.applied)
    if watched.version:
        return watched.version, None
    store = BundleRegistry(registry_uri(watched.registry, watched.out))
    champion = store.by_alias(config.name, CHAMPION)
    if champion is None:
        raise BundleError(f"{config.name!r} has no champion in {store.address}; give --registry, or --bundle VERSION")
    number = champion.tags.get(REPLACED)
    return champion.version, store.by_number(config.name, number).version if number else None


def _served_before(log: LoggedResponses, version: str) -> str | None:
    """The bundle whose first answer came last before this one's, in this stretch."""
    seen = log.versions
    place = seen.index(version) if version in seen else 0
    return seen[place - 1] if place else None


def _figures(
    config: Config, watched: Watched, log: LoggedResponses, version: str, before: str | None, until: datetime
) -> tuple[list[WatchFigure], list[str]]:
    """Figures, and why others are missing."""
    settings, ours = config.watch, log.of(version)
    refused, failed = ours.refused, ours.failed
    missing = [f"{calls} calls are lost and in no figure" for calls in ours.lost.values() if calls]
    if len(refused) < settings.min_answers:
        return [], [f"too few answers: {len(refused)} of {settings.min_answers}", *missing]
    figures = [watch_figures.error_rate(failed, settings, ours.failures)] if len(failed) else []
    figures.append(watch_figures.refusal_rate(refused, settings))
    incomplete = ours.incomplete_retrieval
    if len(incomplete):
        figures.append(watch_figures.incomplete_retrieval(incomplete, settings))
    spent = ours.milliseconds
    if len(spent):
        figures.append(watch_figures.slowness(spent, settings))
    earlier = log.of(before).milliseconds if before else spent[:0]
    if len(spent) and len(earlier) >= settings.min_answers:
        figures.append(watch_figures.slowness_against(spent, earlier, settings))
    else:
        missing.append(f"p99 over the bundle's before: {len(earlier)} of {settings.min_answers} answers in the log")
    clicks = _clicks(config, watched, ours, until)
    return (figures, [*missing, clicks]) if isinstance(clicks, str) else ([*figures, clicks], missing)


def _clicks(config: Config, watched: Watched, answers: LoggedResponses, until: datetime) -> WatchFigure | str:
    """The figure, or why there is none. Answers after the newest click of all are left out: their clicks may yet come.
    """
    settings, what = config.watch, "predicted over observed clicks"
    if config.label.clicks is None:
        return f"{what}: the configuration has no table of clicks"
    address = str(watched.clicks or config.path(config.label.clicks, watched.data))
    wait = min(settings.click_wait, config.label_window)
    try:
        clicks = click_log.read(config, address)
    except (ConfigError, DataError) as error:
        return f"{what}: {error}"
    if not len(clicks):
        return f"{what}: the clicks at {address} hold none"
    reach = min(until, pc.max(clicks["clicked"]).as_py())
    shown = response_history.shown(answers, reach - timedelta(seconds=wait), config.log.position is not None)
    hit, predicted = click_log.clicked(shown, clicks, wait), shown["probability"].to_numpy()
    if max(predicted.sum(), hit.sum()) < settings.min_clicks:
        return (f"{what}: too few clicks: {predicted.sum():.1f} predicted, {int(hit.sum())} observed of "
                f"{settings.min_clicks}; the clicks reach to {reach.isoformat()}, less {wait} s of waiting")
    users = shown["user"].to_numpy(zero_copy_only=False).astype(str)
    return watch_figures.calibration(hit, predicted, users, settings, config.seed)
