from __future__ import annotations

import pytest

from contracts import summary


def test_a_summary_reads_back_and_a_missing_one_is_empty(tmp_path):
    assert summary.read(tmp_path) == {}
    summary.write(tmp_path / "step", {"rows": 3})
    assert summary.read(tmp_path / "step") == {"rows": 3}
    assert [path.name for path in (tmp_path / "step").iterdir()] == ["summary.json"]


def test_a_figure_that_is_no_number_is_refused(tmp_path):
    with pytest.raises(ValueError, match="not JSON compliant"):
        summary.write(tmp_path, {"auc": float("nan")})
