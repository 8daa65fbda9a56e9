"""What drift is held against comes back as it was written; a damaged file is told, a missing one is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from contracts.bundle.reference import FILE, Reference
from contracts.errors import BundleError
from contracts.features.drift import ColumnProfile

MADE = Reference(rows=5, shown=9, calibration=1.1, scores=ColumnProfile(null_rate=0.0, quantiles=(0.1, 0.2)),
                 fields={"city": ColumnProfile(null_rate=0.0, keys={"3": 5})})


def test_it_comes_back(tmp_path: Path) -> None:
    assert Reference.read(tmp_path) is None
    MADE.write(tmp_path)
    assert Reference.read(tmp_path) == MADE


def test_a_damaged_one_says_so(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text('{"rows": "many"}')
    with pytest.raises(BundleError, match=f"{FILE} is damaged"):
        Reference.read(tmp_path)
