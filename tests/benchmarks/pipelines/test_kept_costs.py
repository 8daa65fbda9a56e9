from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.pipelines import kept_costs
from benchmarks.pipelines.kept_costs import keep, kept
from benchmarks.pipelines.process_cost import Cost
from contracts.errors import DataError


def test_runs_come_back_by_engine_and_size(tmp_path: Path) -> None:
    runs = [("duckdb", 5, Cost(2, 3, 4, 5)), ("embedded", 5, Cost(1, 1, 1, 1)), ("duckdb", 1, Cost(6, 7, 8, 9)),
            ("duckdb", 5, Cost(3, 3, 3, 3))]
    assert kept(tmp_path) == {}
    for engine, events, cost in runs:
        keep(tmp_path, engine, events, cost)
    found = kept(tmp_path)
    assert found == {"duckdb": {1: [runs[2][2]], 5: [runs[0][2], runs[3][2]]}, "embedded": {5: [runs[1][2]]}}
    assert list(found["duckdb"]) == [1, 5]


def test_runs_of_two_commits_are_no_one_measurement(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for commit in ("one", "other"):
        monkeypatch.setattr(kept_costs, "present_commit", lambda commit=commit: commit)
        keep(tmp_path, "embedded", 5, Cost(1, 1, 1, 1))
    with pytest.raises(DataError, match="several commits"):
        kept(tmp_path)


def test_a_line_that_was_cut_short_is_named(tmp_path: Path) -> None:
    keep(tmp_path, "embedded", 5, Cost(1, 1, 1, 1))
    with (tmp_path / kept_costs.FILE).open("a") as file:
        file.write('{"engine": "emb')
    with pytest.raises(DataError, match=r"runs\.jsonl holds a line"):
        kept(tmp_path)
