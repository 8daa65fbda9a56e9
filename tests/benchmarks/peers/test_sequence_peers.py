from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks.peers import sequence_peers
from benchmarks.peers.plan import Outcome
from benchmarks.peers.sequence_peers import SequenceRun, compared, figures, hits, main, ran, table
from benchmarks.peers.sequence_plan import SequenceLog, SequencePlan
from contracts.errors import SluiceError
from tests.benchmarks.printed_figures import all_finite, last_line, refuses


def run(speed: float, ndcg: list[float]) -> SequenceRun:
    outcome = Outcome(rows_per_second=speed, seconds_to_best=2.0, epochs=3, best_epoch=3, peak_mib=5.0)
    return SequenceRun(outcome, (np.array(ndcg) > 0).astype(float), np.array(ndcg))


def test_a_hit_counts_by_its_rank() -> None:
    recall, ndcg = hits(np.array([[5, 4, 3], [1, 2, 3], [9, 8, 7]]), np.array([5, 3, 1]))
    assert recall.tolist() == [1, 1, 0]
    assert ndcg.tolist() == pytest.approx([1, 0.5, 0])


def test_speed_counts_where_quality_is_level() -> None:
    good, worse = [0.5, 0.0, 1.0, 0.5], [0.0, 0.0, 0.0, 0.1]
    level = compared({"sluice": [run(30, good), run(50, good)], "rectools": [run(10, good), run(10, worse)]})
    assert level["level"]
    assert level["times"] == 4
    behind = compared({"sluice": [run(30, worse)], "rectools": [run(10, good)]})
    assert not behind["level"]
    assert behind["ndcg_at_10_gain"] == pytest.approx(-0.475)
    sides = {"sluice": figures([run(30, worse)]), "rectools": figures([run(10, good)]), "compared": behind}
    assert "(3.0: quality behind)" in table({"set": sides})


def test_a_peer_that_is_missing_is_said(sequence_plan: SequencePlan) -> None:
    with pytest.raises(SluiceError, match=r"rectools_sequences failed(?s:.*)No module named"):
        ran("rectools", sequence_plan, SequenceLog.read(sequence_plan.rows), Path(sys.executable))


@pytest.mark.slow
def test_the_last_line_has_the_figures_of_both_sides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The platform stands on both sides, so that equal plans give equal figures."""
    def mirrored(side: str, *told: object) -> SequenceRun:
        sides.append(side)
        return ran("sluice", *told)  # type: ignore[arg-type]

    sides: list[str] = []
    monkeypatch.setattr(sequence_peers, "ran", mirrored)
    monkeypatch.setattr(sequence_peers, "peer_python", lambda *_, **__: Path(sys.executable))
    random = np.random.default_rng(0)
    lines = [f"{user} " + " ".join(map(str, random.permutation(30)[:random.integers(2, 9)])) for user in range(40)]
    (tmp_path / "log.txt").write_text("\n".join(lines))
    main([f"one={tmp_path / 'log.txt'}", "--epochs", "1", "--seeds", "2", "--width", "8", "--batch", "50", "--threads",
          "1", "--rates", "0.01", "0.01", "--json"])
    found = last_line(capsys.readouterr().out)["sequence_peers"]["one"]
    assert all_finite(found)
    assert sides == ["sluice", "rectools", "rectools", "sluice"]
    assert found["sluice"]["ndcg_at_10"] == found["rectools"]["ndcg_at_10"]
    assert found["compared"]["level"]


def test_a_set_without_a_name_is_refused() -> None:
    assert refuses(main, "log.txt")
