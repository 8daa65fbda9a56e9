from __future__ import annotations

from pathlib import Path

import pytest
import torch

from models.compiled import kernels


@pytest.fixture(autouse=True)
def _anew() -> None:
    kernels.library.cache_clear()


def test_without_a_compiler_or_where_it_fails_there_are_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("CXX", "no-such-compiler")
    assert kernels.library() is None
    kernels.library.cache_clear()
    monkeypatch.setenv("CXX", "false")
    assert kernels.library() is None
    assert list((tmp_path / "sluice").iterdir()) == []


def test_they_can_be_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLUICE_KERNELS", "0")
    assert kernels.usable(torch.zeros(2, 2)) is None


def test_they_work_on_contiguous_floats_alone() -> None:
    if kernels.library() is None:
        pytest.skip("no C++ compiler on this machine")
    assert kernels.usable(torch.zeros(2, 3)) is not None
    assert kernels.usable(torch.zeros(2, 3).T) is None
    assert kernels.usable(torch.zeros(2, 3, dtype=torch.float64)) is None
