"""What a bundle is held against is of its training rows, and of its own slates for requests of validation."""

from __future__ import annotations

import itertools
import shutil
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from contracts.artifacts import LABEL, TIME, USER, Artifacts
from contracts.bundle.bundle import SCHEMA_VERSION, Manifest
from contracts.bundle.reference import FILE, Reference
from contracts.config.fields import FieldConfig
from contracts.features.encoding import Encoded
from contracts.features.feature_spec import FIRST_ID, SPEC_FILE
from contracts.windows import HashedShares, TimedWindows
from models.examples.batches import ExampleSet
from serving.assembly.assemble import assemble
from serving.bundle.loaded_bundle import LoadedBundle
from serving.metrics.running_sample import DAY, LEAST, SIZE, RunningSample
from serving.replay.item_snapshot import events, window
from serving.replay.reference import write_reference
from serving.request.query import RankAnswer, RankedItem
from tests.serving.conftest import Market
from tests.serving.replay.log_times import HOURS, START, TEST

UNSEALED = Manifest(schema_version=SCHEMA_VERSION, name="reference", content_hash="0" * 64,
                    created=datetime.now(UTC), files={})


@pytest.fixture(scope="module")
def known(log: Artifacts, tmp_path_factory: pytest.TempPathFactory) -> Artifacts:
    """The log of six days with its last two as the validation window."""
    out = Artifacts(Path(shutil.copytree(log.out, tmp_path_factory.mktemp("known") / "out")))
    out.examples("test").rename(out.examples("validation"))
    end = START + timedelta(hours=HOURS)
    TimedWindows(spans={"train": (START, TEST), "validation": (TEST, end)}).write(out.windows)
    return out


@pytest.fixture(scope="module")
def build(market: Market, known: Artifacts, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reference") / "build"
    assemble(market.config, known, folder)
    write_reference(market.config, known, folder)
    return folder


@pytest.fixture(scope="module")
def reference(build: Path) -> Reference:
    found = Reference.read(build)
    assert found is not None
    return found


def test_it_knows_the_training_window_the_slates_and_the_calibration(
    reference: Reference, market: Market, known: Artifacts
) -> None:
    sides = market.spec.of_side("user", "context", "item")
    rows = ExampleSet(known.examples("train"), market.spec).rows
    assert set(reference.fields) == {field.name for field in sides}
    assert reference.rows == rows
    assert reference.fields["device"].values == round(rows * (1 - reference.fields["device"].null_rate))
    assert 0 < reference.shown <= 400 * market.config.serve.default_limit
    assert reference.fields["item_id"].values == reference.shown
    assert 0 <= reference.scores.quantiles[0] <= reference.scores.quantiles[-1] <= 1
    assert reference.calibration == pytest.approx(1.0, abs=0.2)
    assert float(f"{reference.calibration:.6g}") == reference.calibration


def test_slates_are_of_requests_that_know_what_their_users_had_clicked(
    market: Market, known: Artifacts, build: Path, reference: Reference, tmp_path: Path
) -> None:
    """Of a log in which nobody clicks, the same requests have other slates."""
    silent = Artifacts(Path(shutil.copytree(known.out, tmp_path / "out")))
    for file in silent.features.glob("*/*.parquet"):
        table = pq.read_table(file)
        never = pa.array(np.zeros(table.num_rows, dtype=np.float32))
        pq.write_table(table.set_column(table.schema.get_field_index(LABEL), LABEL, never), file)
    other = written(market, silent, build, tmp_path)
    assert other is not None
    assert other.fields["item_id"] != reference.fields["item_id"]
    assert other.fields["taste"] == reference.fields["taste"]
    assert other.calibration == reference.calibration


@pytest.mark.parametrize("timed", [False, True])
def test_without_times_or_raw_features_requests_are_of_whom_no_clicks_are_known(
    market: Market, known: Artifacts, build: Path, reference: Reference, tmp_path: Path, timed: bool
) -> None:
    hashed = Artifacts(Path(shutil.copytree(known.out, tmp_path / "out")))
    if not timed:
        HashedShares(seed=1, shares={"train": 0.7, "validation": 0.3}, test_rows=False).write(hashed.windows)
    shutil.rmtree(hashed.features)
    other = written(market, hashed, build, tmp_path)
    assert other is not None
    assert other.shown == reference.shown
    assert other.fields["taste"] == reference.fields["taste"]


@pytest.fixture(scope="module")
def young(market: Market, known: Artifacts, tmp_path_factory: pytest.TempPathFactory) -> Artifacts:
    """The same log, whose training rows are from before anybody had clicked or come back."""
    out = Artifacts(Path(shutil.copytree(known.out, tmp_path_factory.mktemp("young") / "out")))
    for file in out.examples("train").glob("*/*.parquet"):
        table = pq.read_table(file)
        nothing = {"history": pa.array(np.zeros((table.num_rows, 3), dtype=np.int32).tolist()),
                   "visits#2": pa.array(np.full(table.num_rows, FIRST_ID)),
                   "visits": pa.array(np.zeros(table.num_rows))}
        for name, values in nothing.items():
            place = table.schema.get_field_index(name)
            table = table.set_column(place, name, values.cast(table.schema.field(name).type))
        pq.write_table(table, file)
    counted = [field.model_copy(update={"kind": "counter"}) if field.name == "visits" else field
               for field in market.spec.fields]
    market.spec.model_copy(update={"fields": tuple(counted)}).write(out.encoding)
    return out


def test_what_grows_with_the_log_is_as_whoever_asks_next_has_it(
    market: Market, young: Artifacts, build: Path, reference: Reference, tmp_path: Path
) -> None:
    """A sequence as the bundle's table has it for validation's users, a counter as validation's rows have it; how far
    both are from training is told."""
    copy = without_reference(build, tmp_path)
    shutil.copy(young.encoding / SPEC_FILE, copy)
    grown = write_reference(market.config, young, copy)
    found = Reference.read(copy)
    assert found is not None
    asked = ExampleSet(young.examples("validation"), market.spec)
    users = events(young, [USER, TIME], *window(young, "validation"))[USER].to_pylist()
    none = np.mean([not market.users["history"][market.users[USER].index(user)] for user in users])
    assert found.fields["history"].null_rate == pytest.approx(none)
    assert found.histories == {"history": asked.rows, "visits": asked.rows}
    assert found.fields["visits"].null_rate == 0
    assert {name: found.fields[name] for name in ("taste", "device", "hour")} == {
        name: reference.fields[name] for name in ("taste", "device", "hour")}
    assert set(grown) == {"history", "visits"}
    assert min(grown.values()) > 0.25


def test_requests_of_the_day_after_a_young_log_do_not_drift_and_lost_histories_do(
    market: Market, young: Artifacts, build: Path, tmp_path: Path
) -> None:
    copy = without_reference(build, tmp_path)
    shutil.copy(young.encoding / SPEC_FILE, copy)
    write_reference(market.config, young, copy)
    found = Reference.read(copy)
    assert found is not None
    bundle = LoadedBundle.read(copy, UNSEALED, check_parity=False)
    rows = np.random.default_rng(3).integers(0, len(bundle.users), SIZE)
    same, lost = (psi_of(bundle, found, asked) for asked in (rows, np.full(SIZE, -1)))
    assert max(same["history"], same["visits"]) < 0.1
    assert lost["history"] > 0.25


def test_without_examples_there_is_none(market: Market, trained: Artifacts, build: Path, tmp_path: Path) -> None:
    assert written(market, trained, build, tmp_path) is None


def test_a_field_of_the_clock_is_not_compared(
    market: Market, known: Artifacts, build: Path, reference: Reference, tmp_path: Path
) -> None:
    """The requests of some hours never have the hours of all days."""
    log = market.config.log.model_copy(update={"derive": {"hour": "hour(time)"}})
    hour = FieldConfig(name="hour", kind="numeric", side="context")
    config = market.config.model_copy(update={"log": log, "fields": (*market.config.fields, hour)})
    found = written(replace(market, config=config), known, build, tmp_path)
    assert found is not None
    assert set(found.fields) == set(reference.fields) - {"hour"}


def test_the_training_rows_are_of_the_whole_window(
    known: Artifacts, market: Market, monkeypatch: pytest.MonkeyPatch, build: Path, tmp_path: Path
) -> None:
    """However few row groups are read."""
    monkeypatch.setattr("serving.replay.reference.GROUPS", 2)
    groups = ExampleSet(known.examples("train"), market.spec).groups
    assert len(groups) == 4  # one a day
    found = written(market, known, build, tmp_path)
    assert found is not None
    assert found.rows == groups[0].rows + groups[2].rows


def psi_of(bundle: LoadedBundle, reference: Reference, users: np.ndarray) -> dict[str, float]:
    """Of requests of these rows of the table of users, in nothing else unlike one another."""
    sample = RunningSample(bundle, reference, itertools.count(1.0, DAY / LEAST).__next__)
    missing = bundle.encoder.encode({}, "user", "context")
    item = RankedItem(item=bundle.items.key(0), probability=0.1, score=1.0, sold=None, channel="two_tower",
                      stage_scores={}, reasons=[])
    for row in users:
        ids, dense = missing.ids.copy(), missing.dense.copy()
        stored, values = bundle.users.ids[row], bundle.users.dense[row]
        ids[0, : len(stored)], dense[0, : len(values)] = stored, values
        sample.tell(RankAnswer([item], [], "v", [], True, Encoded(ids, dense)))
    found = sample.drift().fields
    assert found is not None
    return dict(found)


def without_reference(build: Path, folder: Path) -> Path:
    copy = Path(shutil.copytree(build, folder / "build"))
    (copy / FILE).unlink()
    return copy


def written(market: Market, out: Artifacts, build: Path, folder: Path) -> Reference | None:
    """For a copy of `build`, which has one already."""
    copy = without_reference(build, folder)
    write_reference(market.config, out, copy)
    return Reference.read(copy)
