"""What is said to Airflow's REST API, and what becomes of its answers."""

from __future__ import annotations

import pytest

from contracts.errors import SluiceError
from sluice.airflow_demo import api as airflow_api
from sluice.airflow_demo.api import AirflowApi
from tests.sluice.airflow_demo.airflow_page import HEALTHY, airflow_page


def test_it_is_healthy_when_every_part_beats_and_not_before():
    with airflow_page({}) as page:
        api = AirflowApi(page.address)
        assert api.healthy()
        for part in HEALTHY:
            page.health = HEALTHY | {part: {"status": "unhealthy"}}
            assert not api.healthy()
            page.health = HEALTHY | {part: None}
            assert not api.healthy()
    assert not api.healthy()


def test_variables_are_made_and_changed():
    with airflow_page({}) as page:
        api = AirflowApi(page.address)
        api.set_variables({"sluice_runs": "/runs"})
        api.set_variables({"sluice_runs": "/other", "sluice_data": "/data"})
        assert page.variables == {"sluice_runs": "/other", "sluice_data": "/data"}


def test_a_run_is_over_the_whole_day_and_waited_for(monkeypatch):
    monkeypatch.setattr(airflow_api, "POLL_SECONDS", 0.01)
    with airflow_page({"train": "success", "verify": "failed"}) as page:
        api = AirflowApi(page.address)
        api.unpause("daily_ranking")
        run = api.trigger("daily_ranking", "2026-01-18", {"watch_seconds": 0})
        states = api.wait("daily_ranking", run, 30)
        api.clear("daily_ranking", run, "verify")
    assert states == {"train": "success", "verify": "failed"}
    assert run == "day_2026-01-18"
    triggered = next(body for method, path, body in page.requests if path == "dags/daily_ranking/dagRuns")
    assert triggered["data_interval_start"] == "2026-01-18T00:00:00+00:00"
    assert triggered["data_interval_end"] == "2026-01-19T00:00:00+00:00"
    assert triggered["conf"] == {"watch_seconds": 0}
    _, path, cleared = page.requests[-1]
    assert (path, cleared["task_ids"], cleared["include_downstream"]) == (
        "dags/daily_ranking/clearTaskInstances", ["verify"], True)


def test_a_run_that_does_not_end_in_time_is_an_error(monkeypatch):
    monkeypatch.setattr(airflow_api, "POLL_SECONDS", 0.01)
    with airflow_page({}) as page:
        page.run_states = ["running"]
        with pytest.raises(SluiceError, match=r"has not ended after 0\.05 s"):
            AirflowApi(page.address).wait("daily_ranking", "day_1", 0.05)


def test_an_answer_that_is_no_good_one_is_an_error_with_its_code():
    with airflow_page({}) as page, pytest.raises(SluiceError, match="answered 404 to GET"):
        AirflowApi(page.address).call("GET", "nothing")


def test_the_dags_are_named():
    with airflow_page({}) as page:
        assert AirflowApi(page.address).dags() == {"daily_ranking", "retention"}
