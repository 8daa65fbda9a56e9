"""A short run of the real thing: a worker is killed under load, and every call is a row or counted as lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.billing.answer_log import main
from tests.benchmarks.printed_figures import last_line, refuses


def test_a_wrong_option_is_refused() -> None:
    assert refuses(main, "some/bundle", "--rate", "fast")


@pytest.mark.slow
def test_rows_losses_and_money_are_what_callers_were_told(
    bundle_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main([str(bundle_folder), "--seconds", "5", "--rate", "40", "--kill-every", "2", "--json"])
    found = last_line(capsys.readouterr().out)
    assert (found["exit_code"], found["kills"] > 0) == (0, True)
    assert found["answered"] > 50
    assert found["unlogged"] <= found["lost"]
    assert (found["twice"], found["left_over"]) == (0, 0)
    assert found["calls_logged"]["OK"] + found["lost"] >= found["answered"]
    assert sum(found["calls_logged"].values()) <= found["sent"]
    assert found["billed"] > 0
    assert found["difference"] == pytest.approx(0.0, abs=1e-9)


@pytest.mark.slow
def test_the_cost_is_told_per_request(
    bundle_folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchmarks.billing.answer_log.TURNS", 3)
    main([str(bundle_folder), "--cost", "--json"])
    found = last_line(capsys.readouterr().out)
    assert 0 < found["loop_us"] < found["all_us"]
    assert found["files"] >= 1
