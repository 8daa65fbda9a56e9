from __future__ import annotations

from pathlib import Path

import pytest

from sluice.dev import kept_figures
from sluice.dev.kept_figures import KeptFigures


def never() -> float:
    raise AssertionError("made again")


def test_what_was_made_is_not_made_again(tmp_path: Path) -> None:
    path = tmp_path / "new" / "figures.jsonl"
    figures = {"auc": 0.1 + 0.2, "cells": [1, None]}
    assert KeptFigures(path, "settings")("seed 1", lambda: figures) == figures
    again = KeptFigures(path, "settings")
    assert again("seed 1", never) == figures
    assert again("seed 2", lambda: 2.0) == 2.0


def test_a_line_cut_by_a_kill_is_made_again_and_spoils_no_other(tmp_path: Path) -> None:
    path = tmp_path / "figures.jsonl"
    kept = KeptFigures(path)
    kept("first", lambda: 1.0)
    kept("second", lambda: 2.0)
    path.write_text(path.read_text()[:-9])
    resumed = KeptFigures(path)
    assert resumed("first", never) == 1.0
    assert resumed("second", lambda: 3.0) == 3.0
    assert KeptFigures(path)("second", never) == 3.0


def test_other_settings_or_other_code_find_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "figures.jsonl"
    KeptFigures(path, {"dim": 4})("seed 1", lambda: 1.0)
    assert KeptFigures(path, {"dim": 8})("seed 1", lambda: 2.0) == 2.0
    assert KeptFigures(path, {"dim": 4})("seed 1", never) == 1.0
    monkeypatch.setattr(kept_figures, "CODE", ("models",))
    assert KeptFigures(path, {"dim": 4})("seed 1", lambda: 3.0) == 3.0
