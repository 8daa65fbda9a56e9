"""The data quality gate on written features: eight quiet days, then one that is poisoned."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console

from contracts.artifacts import LABEL, ROW, Artifacts
from contracts.config.config import Config
from contracts.config.log import SparkSettings
from contracts.errors import DataError, GateRefused
from contracts.summaries.quality import QualitySummary
from contracts.summaries.summary import required
from pipelines.engine.session import open_session
from pipelines.jobs import quality_job
from sluice.run import quality_gate

DAYS, ROWS = 6, 400
LAST = f"2026-01-{DAYS:02d}"
CONSOLE = Console(stderr=True, quiet=True)
CONFIG = Config.model_validate({
    "name": "shop", "log": {"path": "log", "event_time": "time"}, "label": {"expression": "clicked"},
    "fields": [{"name": "city", "kind": "categorical", "side": "context"},
               {"name": "price", "kind": "numeric", "side": "context"}],
})


@pytest.fixture(scope="module", autouse=True)
def spark():
    session = open_session(SparkSettings(master="local[1]", settings={"spark.sql.shuffle.partitions": "1"}), "quality")
    yield session
    session.stop()


def write_day(out: Artifacts, number: int, poisoned: bool = False) -> None:
    draw = np.random.default_rng(number)
    cities = draw.choice(["rome", "oslo", "lima"], ROWS).tolist()
    if poisoned:
        cities = [None if draw.random() < 0.4 else city for city in cities]
    folder = out.features / f"day=2026-01-{number:02d}"
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({
        ROW: np.arange(ROWS) + number * ROWS, LABEL: (draw.random(ROWS) < 0.2).astype(np.float32), "city": cities,
        "price": draw.normal(size=ROWS),
    }), folder / "part-0.parquet")


@pytest.fixture(scope="module")
def out(tmp_path_factory) -> Artifacts:
    found = Artifacts(tmp_path_factory.mktemp("out"))
    for number in range(1, DAYS + 1):
        write_day(found, number)
    return found


def test_a_quiet_day_passes_a_poisoned_one_is_refused_and_its_repair_passes(out):
    found = quality_gate.check_quality(CONFIG, out, CONSOLE)
    assert (found.day, found.refused, len(found.history)) == (LAST, (), DAYS - 1)
    assert found.judged > 0

    write_day(out, DAYS, poisoned=True)
    with pytest.raises(GateRefused, match="column 'city': the share of nulls") as caught:
        quality_gate.check_quality(CONFIG, out, CONSOLE)
    picture = out.quality / f"day={LAST}" / quality_gate.PICTURE
    assert str(picture) in str(caught.value)
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert "city" in required(picture.parent, QualitySummary, "sluice quality").columns

    write_day(out, DAYS + 1)  # a refused day teaches the next one nothing
    assert LAST not in quality_gate.check_quality(CONFIG, out, CONSOLE).history

    write_day(out, DAYS)
    assert quality_gate.check_quality(CONFIG, out, CONSOLE, LAST).refused == ()
    assert not picture.exists()
    assert LAST in quality_gate.check_quality(CONFIG, out, CONSOLE).history


def test_a_day_that_did_not_change_is_not_profiled_again(out):
    said: list[str] = []
    quality_job.evaluate_day(CONFIG, out, LAST, said.append)
    said.clear()
    quality_job.evaluate_day(CONFIG, out, LAST, said.append)
    assert said == []
    write_day(out, 2, poisoned=True)
    quality_job.evaluate_day(CONFIG, out, LAST, said.append)
    write_day(out, 2)
    assert said == ["2026-01-02"]


def test_what_cannot_be_judged_is_an_error(out, tmp_path: Path):
    with pytest.raises(DataError, match="no days to judge"):
        quality_job.evaluate_day(CONFIG, Artifacts(tmp_path))
    with pytest.raises(DataError, match="no day 2025-01-01"):
        quality_job.evaluate_day(CONFIG, out, "2025-01-01")
