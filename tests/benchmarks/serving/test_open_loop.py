from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks.serving.open_loop import EDGES, Call, figures, histogram, main, request
from tests.benchmarks.printed_figures import refuses

ROOT = Path(__file__).parents[3]


def test_times_count_from_when_a_request_was_due() -> None:
    calls = [Call(due=10.0, sent=10.5, done=11.0, code="OK"), Call(due=11.0, sent=11.0, done=11.2, code="OK")]
    found = figures(calls, rate=1.0, seconds=2.0)
    assert found.max_ms == pytest.approx(1000)
    assert found.answered == 1.0
    assert found.sent_late_ms == pytest.approx(495, abs=5)


def test_every_call_is_counted_under_its_status() -> None:
    calls = [Call(0.0, 0.0, 0.1, "OK", degraded=True), Call(0.0, 0.0, 0.1, "RESOURCE_EXHAUSTED"), Call(0.0)]
    found = figures(calls, rate=3.0, seconds=1.0)
    assert found.codes == {"OK": 1, "RESOURCE_EXHAUSTED": 1, "LOST": 1}
    assert (found.requests, found.degraded) == (3, 1)


def test_a_histogram_counts_by_upper_edges() -> None:
    found = histogram(np.array([0.4, 1.0, 1.1, 25.0, 99_999.0, np.nan]))
    assert found == {"1": 2, "2": 1, "30": 1, "more": 1}
    assert list(EDGES) == sorted(EDGES)


def test_users_vary_and_candidates_are_named_where_wanted() -> None:
    assert len({request(number, 50, 10, False, 0).user_id for number in range(200)}) == 50
    assert not request(1, 50, 10, False, 0).HasField("candidate_list")
    assert len(set(request(1, 50, 10, False, 200).candidate_list.item_ids)) == 200


def test_wrong_options_are_refused() -> None:
    assert refuses(main, "127.0.0.1:1", "--rate", "fast")
    assert refuses(main, "127.0.0.1:1")
    assert refuses(main, "127.0.0.1:1", "--rate", "5", "--callers", "2")


def test_a_generator_starts_without_what_a_server_computes_with() -> None:
    """A benchmark starts one for each of its stretches."""
    code = "import sys, benchmarks.serving.open_loop; print({'torch', 'faiss', 'pandas'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "set()"
