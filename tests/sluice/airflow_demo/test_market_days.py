"""Days of the marketplace's log, delivered one by one, with what a server answered among them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from contracts.config.simulation import Simulation
from serving.response_log.response_log import ResponseLog
from sluice.airflow_demo.market_days import MarketDays, read_answers
from tests.serving.logged_responses import logged

NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)
VISITS = [f"q{number}" for number in range(20)]


@pytest.fixture(scope="module")
def days(tmp_path_factory) -> MarketDays:
    return MarketDays(Simulation(events=2_000, users=300, items=120, days=2), 5, tmp_path_factory.mktemp("market"))


def log_answers(folder, days: MarketDays, best: bool) -> None:
    """Twenty visits, answered with the best items by the truth, or with the worst."""
    population, truth, log = days.world[0], days.world[2], ResponseLog(folder)
    for number in range(20):
        context = {"device": "phone", "placement": "feed", "hour": "9"}
        user = truth.values["user"][number]
        worth = truth.slate(user, context) * population.bid
        items = [truth.values["item"][code] for code in np.argsort(-worth if best else worth)[:8]]
        log.append(logged(f"q{number}", items, time=NOW + timedelta(seconds=number), user=user, context=context,
                          created=NOW))
    log.append(logged("asked", items, time=NOW, user="airflow", created=NOW))
    log.append(logged("bad", [], time=NOW, user="u", created=NOW, status="INTERNAL"))
    log.close()


def test_a_day_holds_the_old_rule_s_rows_and_the_answers_at_their_hour(days, tmp_path):
    log_answers(tmp_path, days, best=True)
    answers = read_answers(tmp_path, NOW, NOW + timedelta(hours=1), VISITS)
    first = answers.filter(pc.field("request_id") == "q3")["items"][0][0].as_py()
    clicks = pa.table({"request_id": ["q3"], "item_id": [first]})
    alone, both = days.deliver(1), days.deliver(1, answers, clicks)
    assert both == alone + 20 * 8
    rows = pq.read_table(days.raw / "impressions" / "part-001.parquet")
    served = rows.filter(pc.starts_with(rows["request_id"], "q"))
    times = served["event_time"].to_pylist()
    assert {(at.date().isoformat(), at.hour) for at in times} == {(days.date(1), 9)}
    assert served["position"].to_pylist()[:8] == list(range(1, 9))
    clicked = pq.read_table(days.raw / "clicks" / "part-001.parquet").filter(pc.field("request_id") == "q3")
    assert clicked.num_rows == 1
    assert clicked["event_time"][0].as_py() > min(times)


def test_answers_outside_the_stretch_failed_ones_and_those_to_others_are_left_out(days, tmp_path):
    log_answers(tmp_path, days, best=True)
    found = read_answers(tmp_path, NOW + timedelta(seconds=5), NOW + timedelta(seconds=15), VISITS)
    assert found["request_id"].to_pylist() == sorted(f"q{number}" for number in range(5, 15))
    some = read_answers(tmp_path, NOW, NOW + timedelta(hours=1), ["q2", "bad", "q11", "never"])
    assert some["request_id"].to_pylist() == ["q11", "q2"]


def test_the_best_slates_reach_the_oracle_and_the_worst_do_not(days, tmp_path):
    log_answers(tmp_path / "best", days, best=True)
    log_answers(tmp_path / "worst", days, best=False)
    shares = [days.share_of_oracle(read_answers(tmp_path / name, NOW, NOW + timedelta(hours=1), VISITS))
              for name in ("best", "worst")]
    assert shares[0] == pytest.approx(1.0)
    assert shares[1] < 0.2


def test_a_poisoned_day_lacks_most_devices_and_can_be_delivered_again(days):
    days.deliver(0)
    path = days.raw / "impressions" / "part-000.parquet"
    whole = pq.read_table(path)
    days.poison(0)
    broken = pq.read_table(path)
    assert 0.6 < broken["device"].null_count / broken.num_rows < 0.8
    assert broken.drop(["device"]).equals(whole.drop(["device"]))
    days.deliver(0)
    assert pq.read_table(path).equals(whole)
