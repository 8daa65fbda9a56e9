"""`sluice watch`: what the champion answered and what was clicked of it, against limits; rolls back where it may."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from contracts import summary
from contracts.config.config import Config
from contracts.errors import BundleError, ConfigError
from models.tracking.bundle_registry import CHAMPION, REPLACED, BundleRegistry, registry_uri
from serving.replay import response_history
from serving.replay.response_history import LoggedResponses
from sluice.release import click_log, registration, watch_figures
from sluice.release.watch_figures import Figure

FOLDER = "watch"


@dataclass(frozen=True)
class Watched:
    """What is watched, where. `clicks` None: the configured table; `version` None: the registry's champion."""

    out: Path
    answers: Path
    clicks: Path | None = None
    data: Path | None = None
    since: datetime | None = None
    until: datetime | None = None
    registry: str | None = None
    version: str | None = None


def watch(config: Config, asked: Watched, roll_back: bool = False) -> dict[str, Any]:
    """Judges and writes OUT/watch/summary.json, which it answers. `reasons` not empty: the champion should go back.

    Raises DataError without a response log; BundleError without a champion, or when there is nothing to go back to.
    """
    until = asked.until or datetime.now(UTC)
    since = asked.since or until - timedelta(seconds=config.watch.span)
    if since >= until:
        raise ConfigError(f"the stretch to watch is empty: {since.isoformat()} is not before {until.isoformat()}")
    version, before = _versions(config, asked)
    log = response_history.read(asked.answers, since, until)
    before = before or _served_before(log, version)
    figures, silent = _judged(config, asked, log, version, before, until)
    found: dict[str, Any] = {
        "bundle": version, "previous": before, "since": since.isoformat(), "until": until.isoformat(),
        "answers": len(log.of(version)), "figures": [asdict(one) for one in figures], "not_judged": silent,
        "reasons": [one.sentence for one in figures if one.against], "settings": config.watch.model_dump(),
    }
    summary.write(asked.out / FOLDER, found)
    if found["reasons"] and roll_back:
        found["roll_back"] = registration.rollback(config.name, registry_uri(asked.registry, asked.out), version)
        summary.write(asked.out / FOLDER, found)
    return found


def lines(found: dict[str, Any]) -> list[str]:
    """The verdict as people read it."""
    said = [f"{found['bundle']}: {found['answers']} answers from {found['since']} to {found['until']}"]
    said += [f"{'WRONG' if one['against'] else 'fine '}  {one['sentence']}" for one in found["figures"]]
    said += [f"       {one}" for one in found["not_judged"]]
    back = found.get("roll_back")
    if back:
        said.append(f"champion is {back['champion']}" + ("" if back["rolled_back"] else " by now; nothing was changed"))
    return said


def _versions(config: Config, asked: Watched) -> tuple[str, str | None]:
    """The bundle that is judged, and the one that it replaced where the registry says so."""
    if asked.version:
        return asked.version, None
    store = BundleRegistry(registry_uri(asked.registry, asked.out))
    champion = store.by_alias(config.name, CHAMPION)
    if champion is None:
        raise BundleError(f"{config.name!r} has no champion in {store.uri}; give --registry, or --bundle VERSION")
    number = champion.tags.get(REPLACED)
    return champion.version, store.by_number(config.name, number).version if number else None


def _served_before(log: LoggedResponses, version: str) -> str | None:
    """The bundle whose first answer came last before this one's, in this stretch."""
    seen = log.versions
    place = seen.index(version) if version in seen else 0
    return seen[place - 1] if place else None


def _judged(
    config: Config, asked: Watched, log: LoggedResponses, version: str, before: str | None, until: datetime
) -> tuple[list[Figure], list[str]]:
    """Figures, and why others are missing."""
    settings, ours = config.watch, log.of(version)
    if len(ours) < settings.min_answers:
        return [], [f"too few answers: {len(ours)} of {settings.min_answers}"]
    figures, silent = [watch_figures.error_rate(ours.failed, settings)], []
    spent = ours.milliseconds
    if len(spent):
        figures.append(watch_figures.slowness(spent, settings))
    earlier = log.of(before).milliseconds if before else spent[:0]
    if len(spent) and len(earlier) >= settings.min_answers:
        figures.append(watch_figures.slowness_against(spent, earlier, settings))
    else:
        silent.append(f"p99 over the bundle's before: {len(earlier)} of {settings.min_answers} answers in the log")
    clicks = _clicks(config, asked, ours, until)
    return (figures, [*silent, clicks]) if isinstance(clicks, str) else ([*figures, clicks], silent)


def _clicks(config: Config, asked: Watched, answers: LoggedResponses, until: datetime) -> Figure | str:
    """The figure, or why there is none. Answers after the newest click are left out: their clicks may yet come."""
    settings, what = config.watch, "predicted over observed clicks"
    if config.label.clicks is None:
        return f"{what}: the configuration has no table of clicks"
    folder = asked.clicks or Path(config.path(config.label.clicks, asked.data))
    if not folder.exists():
        return f"{what}: no clicks at {folder}"
    clicks, wait = click_log.read(config, folder), min(settings.click_wait, config.label_window)
    if not len(clicks):
        return f"{what}: the clicks at {folder} hold none"
    reach = min(until, pc.max(clicks["clicked"]).as_py())
    shown = response_history.shown(answers, reach - timedelta(seconds=wait), config.log.position is not None)
    hit, predicted = click_log.clicked(shown, clicks, wait), shown["probability"].to_numpy()
    if max(predicted.sum(), hit.sum()) < settings.min_clicks:
        return (f"{what}: too few clicks: {predicted.sum():.1f} predicted, {int(hit.sum())} observed of "
                f"{settings.min_clicks}; the clicks reach to {reach.isoformat()}, less {wait} s of waiting")
    users = shown["user"].to_numpy(zero_copy_only=False).astype(str)
    return watch_figures.calibration(hit, predicted, users, settings, config.seed)
