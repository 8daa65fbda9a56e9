"""A real Airflow, started and stopped: its API as the demo uses it, one run of a DAG, and a refusal."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path

import pytest

from contracts.errors import SluiceError
from serving.server.port_takeover import reserved
from sluice.airflow_demo import process
from sluice.airflow_demo.process import DAGS, HOST, AirflowProcess, free_ports

DAYS = [f"2026-01-{number:02d}" for number in range(1, 6)]


def test_the_log_servers_ports_are_free_too():
    first = free_ports()
    with reserved(HOST, first) as one, reserved(HOST, first + 1) as two, reserved(HOST, first + 2) as three:
        assert (one, two, three) == (first, first + 1, first + 2)


LOOPBACK, LISTENS = {"0100007F"}, "0A"  # as the kernel writes them


def listens_on(port: int) -> set[str]:
    """Addresses of this machine's listeners on the port."""
    rows = [line.split() for name in ("tcp", "tcp6") for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]]
    return {row[1].split(":")[0] for row in rows if row[3] == LISTENS and int(row[1].split(":")[1], 16) == port}


def test_an_airflow_that_ends_has_not_come_up(tmp_path, monkeypatch):
    script = tmp_path / "setup" / "airflow.sh"
    script.parent.mkdir()
    script.write_text("#!/bin/sh\nexit 1\n")
    script.chmod(0o755)
    monkeypatch.setattr(process, "ROOT", tmp_path)
    with (pytest.raises(SluiceError, match=r"airflow\.log says why"),
          AirflowProcess(tmp_path / "airflow", tmp_path / "airflow.log") as airflow):
        airflow.wait()


@pytest.mark.slow
def test_retention_runs_in_a_real_airflow_and_the_page_is_there(tmp_path):
    runs = tmp_path / "runs"
    for day in DAYS:
        (runs / day).mkdir(parents=True)
    with AirflowProcess(tmp_path / "airflow", tmp_path / "airflow.log") as airflow:
        airflow.wait()
        api = airflow.api
        assert api.dags() == DAGS
        api.set_variables({"sluice_runs": str(runs), "sluice_answers": str(tmp_path / "answers")})
        api.unpause("retention")
        for day, kept in ((DAYS[-2], 3), (DAYS[-1], 2)):  # the second has a deadline: there is a usual time now
            run = api.trigger("retention", day, {"keep_runs": kept, "keep_answers": 2})
            states = api.wait("retention", run, 300)
            assert set(states.values()) == {"success"}, json.dumps(states)
            assert sorted(path.name for path in runs.iterdir()) == DAYS[-kept:]
        api.clear("retention", run, "runs")
        assert set(api.wait("retention", run, 300).values()) == {"success"}
        with urllib.request.urlopen(api.address, timeout=30) as page:
            assert b"<html" in page.read()
        page_port = int(api.address.rpartition(":")[2])
        for port in (page_port, page_port + 1, page_port + 2):  # the page's, and the log servers'
            assert listens_on(port) == LOOPBACK
        with pytest.raises(SluiceError, match="answered 404 to GET"):
            api.call("GET", "dags/nothing")
    assert not api.healthy()
