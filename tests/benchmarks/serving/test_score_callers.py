"""What counts as failed."""

from __future__ import annotations

import argparse

import pytest

from benchmarks.serving.score_callers import figures, main, measured
from benchmarks.serving.score_peers import free_port
from benchmarks.wire.score_requests import BY
from contracts.errors import SluiceError
from tests.benchmarks.printed_figures import refuses


@pytest.mark.parametrize("by", BY)
def test_a_call_that_nobody_answers_has_failed(by: str) -> None:
    chosen = argparse.Namespace(seconds=0.1, callers=2, users=3, items=300, by=by)
    found = measured("grpc", f"127.0.0.1:{free_port()}", chosen)
    assert found.failed >= 2
    assert found.per_second == 0


@pytest.mark.slow
def test_who_answers_nothing_has_no_figures() -> None:
    with pytest.raises(SluiceError, match="grpc answered none of"):
        figures("grpc", f"127.0.0.1:{free_port()}", 1, 0.1, 3, 300)


def test_wrong_options_are_refused() -> None:
    assert refuses(main, "oracle", "127.0.0.1:1")
    assert refuses(main, "grpc", "127.0.0.1:1", "--by", "pigeon")
