"""The table of what remains: fixed cohorts prove nothing by unions where nobody is lost."""

from __future__ import annotations

import json

from benchmarks.federated import leak_curve
from benchmarks.federated.leak_curve import Case


def test_cohorts_and_larger_rounds_leave_less_and_the_table_is_printed(monkeypatch, capsys):
    monkeypatch.setattr(leak_curve, "CASES", (Case("cpp5", 40, False), Case("cpp5", 40, True)))
    leak_curve.main(["--rounds", "60", "--json"])
    anew, together = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert together["both"][-1] == 0.0
    assert anew["both"][-1] > 0.0
    assert anew["rounds"][-1] == 60
