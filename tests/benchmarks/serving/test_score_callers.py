"""Requests that ask every server for the same, and what counts as an answer."""

from __future__ import annotations

import argparse

from benchmarks.serving.score_callers import ITEMS, PATHS, body, items_of, main, measured
from benchmarks.serving.score_peers import free_port
from tests.benchmarks.printed_figures import refuses


def test_every_server_is_asked_for_the_same_items_of_the_same_user() -> None:
    for number in range(3):
        user, items = f"u{number}", items_of(number, 5000)
        assert len(set(items)) == ITEMS
        for server in set(PATHS) - {"mlflow"}:
            assert body(server, number, 10, 5000) == {"user": user, "items": items}
        rows = body("mlflow", number, 10, 5000)["dataframe_split"]
        assert (rows["columns"], rows["data"]) == (["user", "item"], [[user, item] for item in items])


def test_a_call_that_nobody_answers_has_failed() -> None:
    chosen = argparse.Namespace(seconds=0.1, callers=2, users=3, items=300)
    found = measured("grpc", f"127.0.0.1:{free_port()}", chosen)
    assert found.failed >= 2
    assert found.failed == round(found.per_second * chosen.seconds)


def test_wrong_options_are_refused() -> None:
    assert refuses(main, "oracle", "127.0.0.1:1")
