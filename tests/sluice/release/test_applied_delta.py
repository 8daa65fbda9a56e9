"""What an applied delta made is judged by the watch as a champion is, and taken back bit for bit."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from contracts.bundle import bundle, delta
from contracts.bundle.bundle import MANIFEST, read_manifest, verify
from contracts.config.config import load
from contracts.errors import BundleError
from contracts.release.registration import RollbackResult
from serving.response_log.response_log import ResponseLog
from sluice.release import applied_delta, watch
from sluice.release.applied_delta import AppliedDelta
from tests.serving.logged_responses import logged

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
CONFIG = """
name = "shop"
log = {path = "log", user_id = "user", item_id = "item", request_id = "request_id", event_time = "time"}
label.expression = "clicked = 1"
watch.min_answers = 300
fields = [{name = "item", kind = "categorical", side = "item"}]
"""


@pytest.fixture
def applied(tmp_path: Path) -> AppliedDelta:
    """A folder in which a delta has been applied."""
    for content in (b"before", b"after"):
        build = tmp_path / f"build-{content.decode()}"
        build.mkdir()
        (build / "weights").write_bytes(content)
        bundle.publish(build, tmp_path / content.decode(), "shop")
    delta.make(tmp_path / "before", tmp_path / "after", tmp_path / "delta")
    folder = Path(shutil.copytree(tmp_path / "before", tmp_path / "served"))
    delta.apply(folder, tmp_path / "delta", folder)
    return AppliedDelta(folder, tmp_path / "delta")


def seen(folder: Path, applied: AppliedDelta, failed: float) -> watch.Watched:
    """Answers of both bundles, of the latter's with this share of failures."""
    after, before = applied_delta.versions(applied)
    log, draw = ResponseLog(folder / "answers"), np.random.default_rng(7)
    for number in range(1200):
        ours = number >= 600
        status = "INTERNAL" if ours and draw.random() < failed else "OK"
        log.append(logged(f"r{number}", ["i1"] if status == "OK" else [], time=NOON + timedelta(seconds=number),
                          user="u1", probabilities=[0.2] if status == "OK" else [], version=after if ours else before,
                          created=NOON, status=status, microseconds=1000))
    log.close()
    return watch.Watched(folder, folder / "answers", until=NOON + timedelta(hours=1), applied=applied)


def test_a_delta_whose_answers_fail_is_taken_back_to_the_bundle_before(tmp_path: Path, applied: AppliedDelta) -> None:
    (tmp_path / "watch.toml").write_text(CONFIG)
    found = watch.watch(load(tmp_path / "watch.toml"), seen(tmp_path, applied, 0.1), roll_back=True)
    assert [figure.name for figure in found.figures if figure.against] == ["error_rate"]
    assert found.roll_back is not None
    assert (found.roll_back.left, found.roll_back.champion) == (found.bundle, found.previous)
    assert verify(applied.folder) == verify(tmp_path / "before")
    assert (applied.folder / "weights").read_bytes() == b"before"


def test_a_sound_delta_stays(tmp_path: Path, applied: AppliedDelta) -> None:
    (tmp_path / "watch.toml").write_text(CONFIG)
    found = watch.watch(load(tmp_path / "watch.toml"), seen(tmp_path, applied, 0.0), roll_back=True)
    assert (found.reasons, found.roll_back) == ((), None)
    assert read_manifest(applied.folder).version == found.bundle


@pytest.fixture
def judged(applied: AppliedDelta) -> str:
    """The version that the delta made."""
    return applied_delta.versions(applied)[0]


def test_a_delta_that_was_not_the_last_one_is_not_watched(applied: AppliedDelta, judged: str) -> None:
    assert applied_delta.revert(applied, judged).rolled_back
    with pytest.raises(BundleError, match="name the delta that was applied last"):
        applied_delta.versions(applied)


def publish_next(applied: AppliedDelta, place: Path) -> bundle.Manifest:
    build = applied.folder.parent / "build-next"
    build.mkdir()
    (build / "weights").write_bytes(b"next")
    return bundle.publish(build, place, "shop")


def apply_next(applied: AppliedDelta, made_at: Path) -> str:
    """The next hour's delta; the version that it made."""
    folder = applied.folder.parent
    made = publish_next(applied, folder / "next")
    delta.make(applied.folder, folder / "next", made_at)
    delta.apply(applied.folder, made_at, applied.folder)
    return made.version


def test_what_was_not_judged_is_not_taken_back(applied: AppliedDelta, judged: str) -> None:
    later = apply_next(applied, applied.delta)
    assert applied_delta.revert(applied, judged) == RollbackResult(rolled_back=False, champion=later)
    assert read_manifest(applied.folder).version == later


def test_nor_is_what_comes_while_it_is_taken_back(
    applied: AppliedDelta, judged: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    later: list[str] = []
    real = shutil.copyfile

    def copied(source: Path, target: Path) -> None:
        real(source, target)
        if source.name == MANIFEST:  # the last of them
            monkeypatch.undo()
            later.append(publish_next(applied, applied.folder).version)

    monkeypatch.setattr(shutil, "copyfile", copied)
    assert applied_delta.revert(applied, judged) == RollbackResult(rolled_back=False, champion=later[0])
    assert read_manifest(applied.folder).version == later[0]


def test_what_is_judged_and_led_to_by_no_delta_any_more_is_said(applied: AppliedDelta, judged: str) -> None:
    """The next hour's delta is made, and not applied yet."""
    build = applied.folder.parent / "build-after"
    (build / "weights").write_bytes(b"next")
    bundle.publish(build, applied.folder.parent / "next", "shop")
    delta.make(applied.folder, applied.folder.parent / "next", applied.delta)
    with pytest.raises(BundleError, match="name the delta that was applied last"):
        applied_delta.revert(applied, judged)
    assert read_manifest(applied.folder).version == judged
