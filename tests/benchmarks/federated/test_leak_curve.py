"""The table of what remains: fixed cohorts prove nothing by unions where nobody is lost."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.federated import leak_curve
from benchmarks.federated.leak_curve import Case


def test_cohorts_and_larger_rounds_leave_less_and_the_table_is_printed(monkeypatch, capsys):
    monkeypatch.setattr(leak_curve, "CASES", (Case("cpp5", 48, False), Case("cpp5", 48, True)))
    leak_curve.main(["--rounds", "60", "--json"])
    anew, together = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert together["both"][-1] == 0.0
    assert anew["both"][-1] > 0.0
    assert anew["rounds"][-1] == 60


WAYS = {"anew": {}, "5% lost before the union, 5% after": {"lost": 0.05},
        "a tenth of all clients away in each round": {"there": 0.9},
        "half of all clients away in each round": {"there": 0.5}}
DOCUMENT = Path(__file__).parents[3] / "docs" / "concepts" / "federated.md"


@pytest.mark.slow
def test_the_documentations_table_is_what_the_command_prints():
    lines = [[cell.strip() for cell in line.strip(" |").split("|")]
             for line in DOCUMENT.read_text(encoding="utf-8").splitlines() if line.startswith("  | cpp")]
    assert len(lines) == 11
    for level, clients, way, *shares in lines:
        cohorts, _, more = way.partition(", ")
        case = Case(level, int(clients), cohorts == "cohorts", **WAYS[more or "anew"])
        assert case in leak_curve.CASES
        curve = leak_curve.watched(case, 150).curve()
        found = (curve.unions[-1], curve.sums[-1], curve.both[-1])
        assert [float(share) for share in shares] == [round(share, 3) for share in found], way
