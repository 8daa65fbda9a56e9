"""What happens when a run misses its deadline: an error line, and a message to whom SLUICE_ALERTS names.

A run is late when it takes so much longer than the last good runs of its DAG did on average. The first run of a DAG has
no deadline; its time limit holds.

SLUICE_ALERTS, in the scheduler's environment, is an address that takes JSON by POST, as chat and pager services do;
without it the line is all. It is no Variable: Airflow 3.3 lets a deadline's callback read none.
"""

from __future__ import annotations

import json
import logging
import os
import urllib.request
from datetime import timedelta

from airflow.sdk import DeadlineAlert, DeadlineReference, SyncCallback

USUAL_RUNS = 10
log = logging.getLogger(__name__)


def report_late(dag: str, hours: float, **_: object) -> None:
    """Airflow calls it with its context besides."""
    sentence = f"{dag} takes {hours:g} hours longer than it used to; its page says which failure matters at night"
    log.error("%s", sentence)
    address = os.environ.get("SLUICE_ALERTS", "")
    if address:
        body = json.dumps({"text": sentence}).encode()
        request = urllib.request.Request(address, body, {"Content-Type": "application/json"})
        urllib.request.urlopen(request, timeout=10).close()


def due_within(dag: str, longer: timedelta) -> DeadlineAlert | None:
    """None where the environment says SLUICE_DEADLINES=no: at the end of a good run `airflow dags test` of Airflow 3.3
    looks deadlines up that it has not written, and fails.

    Counted from the usual end and not from the moment the run was queued: with DAGRUN_QUEUED_AT no task of the run can
    be cleared (apache/airflow issue 70368).
    """
    if os.environ.get("SLUICE_DEADLINES") == "no":
        return None
    hours = longer.total_seconds() / 3600
    return DeadlineAlert(
        reference=DeadlineReference.AVERAGE_RUNTIME(max_runs=USUAL_RUNS, min_runs=1), interval=longer,
        callback=SyncCallback(report_late, kwargs={"dag": dag, "hours": hours}),
    )
