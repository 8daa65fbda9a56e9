from __future__ import annotations

from datetime import timedelta
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from benchmarks.serving.days import (
    HISTORY,
    ONCE,
    UPDATED,
    known_by,
    main,
    simulation_of,
    table,
    visits_of,
    windows_of,
)
from contracts.config.config import load
from contracts.errors import ConfigError
from contracts.summaries import summary
from contracts.summaries.days import DaysSummary, PlatformDay
from pipelines.marketplace.marketplace import simulate
from tests.benchmarks import tiny_market
from tests.benchmarks.printed_figures import last_line, refuses

DAY = HISTORY + 1


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    made = load(tiny_market.write(tmp_path_factory.mktemp("config") / "tiny.toml"))
    more = simulation_of(made).model_copy(update={"days": DAY + 1, "events": 2000})
    return made.model_copy(update={"simulation": more})


@pytest.fixture(scope="module")
def folder(config, tmp_path_factory):
    found = tmp_path_factory.mktemp("days")
    simulate(simulation_of(config), config.seed, found / "raw", found / "truth")
    return found


def test_windows_follow_one_another_and_end_where_the_day_begins(config):
    windows = windows_of(config, DAY)
    spans: Any = [windows.statistics, windows.train, windows.validation, windows.test]
    assert [end for _, end in spans[:-1]] == [start for start, _ in spans[1:]]
    begin = simulation_of(config).start + timedelta(days=DAY)
    assert (spans[-1][1], spans[0][0]) == (begin, begin - timedelta(days=HISTORY))


def test_a_run_sees_the_last_days_and_nothing_that_became_known_later(config, folder):
    begin = simulation_of(config).start + timedelta(days=DAY)
    data = known_by(config, folder, DAY)
    for name in ("impressions", "clicks"):
        parts = sorted((data / name).glob("*.parquet"))
        assert [part.stem for part in parts] == [f"part-{day:03d}" for day in range(DAY - HISTORY, DAY)]
        raw = pq.read_table(folder / "raw" / name)
        seen = pq.read_table(data / name)
        assert pc.max(seen["known_time"]).as_py() <= begin
        assert 0 < seen.num_rows < raw.num_rows
    assert (data / "users").resolve() == (folder / "raw" / "users").resolve()


def test_visits_are_the_days_first_impressions_one_a_request(config, folder):
    log = pq.read_table(folder / "raw" / "impressions" / f"part-{DAY:03d}.parquet")
    visits = visits_of(config, folder, DAY, 1000)
    assert len(visits) == len(set(log["request_id"].to_pylist()))
    assert {visit.user for visit in visits} == set(log["user_id"].to_pylist())
    assert visits_of(config, folder, DAY, 3) == visits[:3]
    assert set(visits[0].context) == {"device", "placement", "hour"}


def test_the_table_has_a_line_a_day_and_the_means():
    error = {UPDATED: 0.01, ONCE: 0.01}
    days = [PlatformDay(day=day, share_of_oracle={UPDATED: share, ONCE: 0.5}, standard_error=error, champion="t-1",
                        refused=refused, seconds=1.0)
            for day, share, refused in ((8, 0.7, ""), (9, 0.8, "too bad"))]
    lines = table(days).splitlines()
    assert len(lines) == 2 + len(days) + 1
    assert lines[2].endswith("| passed |")
    assert lines[3].endswith("| refused |")
    assert lines[-1].split("|")[2:4] == [" 0.750 ", " 0.500 "]


def test_days_need_a_simulation_and_a_folder(config):
    with pytest.raises(ConfigError, match="simulation"):
        simulation_of(config.model_copy(update={"simulation": None}))
    assert refuses(main)


@pytest.mark.slow
def test_on_the_first_day_both_platforms_serve_the_same_bundle(tmp_path, capsys):
    sections: dict[str, Any] = {"prerank": {"kind": "dot_product"}, "gate": {"max_miscalibration": 100.0}}
    config = tiny_market.write(tmp_path / "tiny.toml", **sections)
    main(["--config", str(config), "--out", str(tmp_path / "out"), "--days", "1", "--visits", "5",
          "--events-per-day", "400", "--drift", "0.1"])
    found = DaysSummary.model_validate(last_line(capsys.readouterr().out))
    assert found == summary.read(tmp_path / "out", DaysSummary)
    (day,) = found.days
    assert (day.day, day.refused) == (HISTORY, "")
    assert 0 < day.share_of_oracle[UPDATED] <= 1
    np.testing.assert_allclose(day.share_of_oracle[UPDATED], day.share_of_oracle[ONCE], rtol=1e-6)
    assert "Days with drifting tastes" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
