from __future__ import annotations

import pytest

from benchmarks.freshness.change_costs import LOOKS, main
from tests.benchmarks.printed_figures import last_line


@pytest.mark.slow
def test_the_costs_of_a_small_world(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--items", "1500", "--changes", "4000", "--json"])
    found = last_line(capsys.readouterr().out)["change_costs"]
    assert found["cpu_ms"].keys() == found["longest_ms"].keys() == {"store", "read", "write", "publish"}
    assert all(4 * found["cpu_ms"][name] * 1.001 >= found["longest_ms"][name] > 0 for name in found["cpu_ms"])
    assert all(len(found[name]) == LOOKS + 1 for name in ("request_ms", "process_mib", "store_mib"))
    assert found["changed"] > 0
