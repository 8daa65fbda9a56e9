from __future__ import annotations

import json

import pytest

from benchmarks.freshness import filters


def test_narrow_filters_find_all_and_pass_what_they_should(capsys: pytest.CaptureFixture[str]) -> None:
    filters.main(["--items", "3000", "--requests", "5", "--json"])
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    by_kind = {one["kind"]: one for one in found["filters"]}
    assert by_kind.keys() == filters.KINDS.keys()
    assert by_kind["none"]["passing"] == found["items"] == 3000
    assert by_kind["none"]["ratio"] == 1
    assert by_kind["in, 1 of 2"]["passing"] == pytest.approx(1500, abs=200)
    narrow = [one for kind, one in by_kind.items() if "of 1000" in kind and "999" not in kind]
    assert all(one["recall"] == one["recall_worst"] == 1 and one["passing"] < 30 for one in narrow)
    in_, out = by_kind["in, 1 of 1000"]["passing"], by_kind["not in, 999 of 1000"]["passing"]
    assert in_ + out == 3000
