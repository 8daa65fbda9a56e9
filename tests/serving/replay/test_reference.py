"""What a bundle is held against is of its training rows and of its own slates; traffic alike does not drift from it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from contracts.artifacts import LABEL, ROW, Artifacts
from contracts.bundle.reference import FILE, Reference
from contracts.config.fields import FieldConfig
from contracts.features.encoding import number
from serving.assembly.assemble import assemble
from tests.serving.conftest import Market, encode_events

TRAINED = slice(0, 2000), slice(2000, 3000)


def write_examples(market: Market, out: Artifacts) -> None:
    """Of the market's events, in the form in which `sluice features` leaves them."""
    request, candidate = encode_events(market)
    columns: dict[str, pa.Array] = {}
    for block, encoded in (("request", request), ("candidate", candidate)):
        for slot in market.spec.block_ids(block):  # type: ignore[arg-type]
            ids = encoded.ids[:, slot.start : slot.start + slot.width]
            columns[slot.name] = pa.array(ids[:, 0]) if slot.width == 1 else pa.array(list(ids))
        for dense in market.spec.block_dense(block):  # type: ignore[arg-type]
            columns[dense.name] = pa.array(number(market.events[dense.name]))
    rows = {LABEL: pa.array(market.labels), ROW: pa.array(np.arange(len(market.labels)))}
    table = pa.table({**rows, **columns})
    for name, part in zip(("train", "validation"), TRAINED, strict=True):
        folder = out.examples(name) / "day=2026-01-01"
        folder.mkdir(parents=True)
        pq.write_table(table.slice(part.start, part.stop - part.start), folder / "part-0.parquet")


@pytest.fixture
def reference(market: Market, trained_copy: Artifacts, tmp_path: Path) -> Reference:
    write_examples(market, trained_copy)
    assemble(market.config, trained_copy, tmp_path / "build")
    found = Reference.read(tmp_path / "build")
    assert found is not None
    return found


def test_it_knows_the_training_window_the_slates_and_the_calibration(reference: Reference, market: Market) -> None:
    sides = market.spec.of_side("user", "context", "item")
    assert set(reference.fields) == {field.name for field in sides}
    assert reference.rows == 2000
    assert reference.fields["device"].values == 2000
    assert 0 < reference.shown <= 400 * market.config.serve.default_limit
    assert reference.fields["item_id"].values == reference.shown
    assert 0 <= reference.scores.quantiles[0] <= reference.scores.quantiles[-1] <= 1
    assert reference.calibration == pytest.approx(1.0, abs=0.2)
    assert float(f"{reference.calibration:.6g}") == reference.calibration


def test_without_examples_there_is_none(market: Market, trained: Artifacts, tmp_path: Path) -> None:
    assemble(market.config, trained, tmp_path / "build")
    assert not (tmp_path / "build" / FILE).exists()


def test_a_field_of_the_clock_is_not_compared(market: Market, trained_copy: Artifacts, tmp_path: Path) -> None:
    """The requests of some hours never have the hours of all days."""
    write_examples(market, trained_copy)
    log = market.config.log.model_copy(update={"derive": {"hour": "hour(time)"}})
    hour = FieldConfig(name="hour", kind="numeric", side="context")
    config = market.config.model_copy(update={"log": log, "fields": (*market.config.fields, hour)})
    assemble(config, trained_copy, tmp_path / "build")
    found = Reference.read(tmp_path / "build")
    assert found is not None
    sides = market.spec.of_side("user", "context", "item")
    assert set(found.fields) == {field.name for field in sides} - {"hour"}
