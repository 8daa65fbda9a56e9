from __future__ import annotations

import socket
import time

from sluice.airflow_demo.steady_load import SteadyLoad


def test_a_server_that_is_not_there_fails_every_request_on_both_kinds_of_channel():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, and nobody listens
        with SteadyLoad(f"127.0.0.1:{taken.getsockname()[1]}", ["u1", "u2"], 200) as load:
            end = time.monotonic() + 30
            while {outcome.channel for outcome in load.outcomes} != {"kept", "new"}:
                assert time.monotonic() < end
                time.sleep(0.05)
    assert load.failed == load.outcomes
    assert all(outcome.code.startswith("UNAVAILABLE") and outcome.seconds >= 0 for outcome in load.outcomes)
