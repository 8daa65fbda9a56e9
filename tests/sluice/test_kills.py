"""Every job of a day is killed at three named points, re-run, and comes out as if nothing had happened.

The kills follow one another in one folder, so that each run finds what the killed one before it left behind.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from contracts.artifacts import Artifacts
from tests.sluice.day_result import day_result, left_behind
from tests.sluice.small_day import JOBS, KILLED, Forks, Kill, command, write_log

PLACED = r"atomic_write\.py:put_in_place$ target=\S*"
POINTS: dict[str, tuple[Kill, ...]] = {
    "features": (
        Kill("call", PLACED + "/features/day=", n=2),  # one day of features is there
        Kill("call", PLACED + r"/encoding( |$)"),  # features are new, the encoding is not
        Kill("call", PLACED + "examples/train/day=", n=2),  # one day of examples is there
    ),
    "quality": (
        Kill("open", r"/\.profile\.json"),
        Kill("os.rename", r"/profile\.json", n=3),
        Kill("os.rename", r"quality/day=\S+/summary\.json"),
    ),
    "crosses": (
        Kill("os.rename", r"crosses/crosses\.json"),
        Kill("call", PLACED + r"/encoding( |$)"),
        Kill("call", PLACED + "examples/train/day=", n=2),  # the encoding has crosses that most examples lack
    ),
    "pretrain": (
        Kill("call", PLACED + "pair_rates/nodes"),
        Kill("os.rename", r"feature_spec\.json"),
        Kill("os.rename", r"pair_rates/summary\.json"),
    ),
    "train": (
        Kill("open", r"logistic_regression/test_rows\.npy"),
        Kill("os.rename", r"models/two_tower/summary\.json"),
        Kill("os.rename", r"models/summary\.json"),
    ),
    "prerank": (
        Kill("open", r"candidates/validation/rows\.npy"),
        Kill("open", r"fscd/weights\.safetensors"),
        Kill("os.rename", r"prerank/summary\.json"),
    ),
    "bundle": (
        Kill("open", r"\.build/\S*vectors\.npy"),
        Kill("call", PLACED + r"/bundle( |$)"),
        Kill("os.rename", r"bundle_job/summary\.json"),
    ),
    "register": (
        Kill("open", r"mlartifacts/\S+manifest\.json"),
        Kill("call", r"bundle_registry\.py:BundleRegistry\.point$"),  # the version is there, its alias is not
        Kill("os.rename", r"registration/summary\.json"),
    ),
    "promote": (
        Kill("open", r"bundle/manifest\.json"),
        Kill("os.rename", r"gate/summary\.json"),
        Kill("call", r"bundle_registry\.py:BundleRegistry\.point$"),  # it knows whom it replaces, and does not yet
    ),
}


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kills")
    forks = Forks(folder / "said.log")
    yield write_log(folder / "data"), folder, forks
    forks.close()


def through(forks: Forks, data: Path, out: Path, points: dict[str, tuple[Kill, ...]]) -> None:
    for job in JOBS:
        for kill in points.get(job, ()):
            assert forks.run(command(job, data, out), kill) == KILLED, (job, kill, forks.said()[-2000:])
        assert forks.run(command(job, data, out)) == 0, (job, forks.said()[-3000:])


@pytest.mark.slow
def test_killed_at_three_points_of_every_job_a_day_gives_what_it_gives_undisturbed(world):
    data, folder, forks = world
    through(forks, data, folder / "quiet", {})
    through(forks, data, folder / "killed", POINTS)
    quiet, killed = (day_result(Artifacts(folder / name)) for name in ("quiet", "killed"))
    assert quiet["crosses"].crosses  # or else the second encoding was never made
    assert killed == quiet
    assert (quiet["versions"], left_behind(folder / "killed")) == (1, [])


def test_every_job_has_three_points():
    assert {job: len(points) for job, points in POINTS.items()} == dict.fromkeys(JOBS, 3)
