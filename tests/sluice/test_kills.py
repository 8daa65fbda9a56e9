"""Every job of a day is killed at three named points, re-run, and comes out as if nothing had happened; so are features
on Apache Spark at the two where it has written.

The kills follow one another in one folder, so that each run finds what the killed one before it left behind.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from contracts.artifacts import Artifacts
from contracts.config.config import load
from sluice.engines.comparison import tables_of
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
        Kill("os.rename", r"encoding/feature_spec\.json"),
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
        killed_and_run_again(forks, job, data, out, points.get(job, ()))


def killed_and_run_again(forks: Forks, job: str, data: Path, out: Path, kills: tuple[Kill, ...]) -> None:
    for kill in kills:
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


@pytest.mark.slow
def test_features_killed_as_apache_spark_has_written_are_those_of_the_undisturbed_embedded_engine(world):
    """Features, and then examples; what is put in place between them is not of an engine."""
    data, folder, forks = world
    undisturbed, killed = Artifacts(folder / "embedded"), Artifacts(folder / "spark")
    killed_and_run_again(forks, "features", data, undisturbed.out, ())
    spark = Forks(folder / "spark.log", SLUICE_SPARK_MASTER="local[2]", SPARK_LOCAL_IP="127.0.0.1")
    try:
        first, _, last = POINTS["features"]
        assert spark.run(command("features", data, killed.out), first) == KILLED, spark.said()[-2000:]
        kept = {file: file.stat().st_mtime_ns for file in killed.features.glob("day=*/*.parquet")}
        assert kept
        killed_and_run_again(spark, "features", data, killed.out, (last,))
    finally:
        spark.close()
    assert {file: file.stat().st_mtime_ns for file in kept} == kept
    assert [table.table for table in tables_of(load(data / "small.toml"), undisturbed, killed) if not table.equal] == []
    assert left_behind(killed.out) == []


def test_every_job_has_three_points():
    assert {job: len(points) for job, points in POINTS.items()} == dict.fromkeys(JOBS, 3)
