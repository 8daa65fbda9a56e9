from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from contracts.bundle.candidate_lists import CandidateItems, CandidateLists
from contracts.errors import DataError


def lists() -> CandidateLists:
    rows = np.array([[3, 1, -1], [0, -1, -1]], dtype=np.int32)
    made = {field.name: np.ones((2, 3), dtype=np.float32) for field in fields(CandidateLists)}
    return CandidateLists(**(made | {"rows": rows}))


def test_lists_come_back_and_know_their_padding(tmp_path: Path) -> None:
    lists().save(tmp_path / "train")
    back = CandidateLists.load(tmp_path / "train")
    assert len(back) == 2
    assert back.valid.tolist() == [[True, True, False], [True, False, False]]
    for field in fields(CandidateLists):
        np.testing.assert_array_equal(getattr(back, field.name), getattr(lists(), field.name))


def test_items_come_back(tmp_path: Path) -> None:
    items = CandidateItems(np.arange(6).reshape(3, 2), np.zeros((3, 1)), np.ones(3))
    items.save(tmp_path)
    np.testing.assert_array_equal(CandidateItems.load(tmp_path).ids, items.ids)


def test_what_was_not_made_names_the_step(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="sluice prerank"):
        CandidateLists.load(tmp_path / "train")
