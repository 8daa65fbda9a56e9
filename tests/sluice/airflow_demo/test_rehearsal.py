"""Rehearsals print their days, each seed's from a folder of its own, and say when one did not go as planned."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from contracts.errors import SluiceError
from sluice.airflow_demo import rehearsal
from tests.sluice.airflow_demo.planned_days import planned_days


def rehearsed(monkeypatch, tmp_path: Path, days: list, *words: str) -> list[tuple[str, int, int | None]]:
    asked = list[tuple[str, int, int | None]]()

    def rehearse(folder: Path, events: int, seed: int | None, console: object):
        asked.append((folder.name, events, seed))
        yield from days

    monkeypatch.setattr(rehearsal, "rehearse", rehearse)
    rehearsal.main(["--out", str(tmp_path), *words])
    return asked


def test_each_seed_is_rehearsed_in_its_folder(monkeypatch, tmp_path, capsys):
    asked = rehearsed(monkeypatch, tmp_path, planned_days(), "--seeds", "3", "4", "--events", "900")
    assert asked == [("seed-3", 900, 3), ("seed-4", 900, 4)]
    assert [json.loads(line)["day"] for line in capsys.readouterr().out.splitlines()] == [*range(1, 7)] * 2


def test_without_a_seed_it_is_the_examples(monkeypatch, tmp_path):
    assert [(name, seed) for name, _, seed in rehearsed(monkeypatch, tmp_path, planned_days())] == [
        ("seed-example", None)]


def test_a_day_that_does_not_go_as_planned_is_an_error(monkeypatch, tmp_path):
    days = [day.model_copy(update={"refused": "promotion: GAUC"}) if day.day == 2 else day for day in planned_days()]
    with pytest.raises(SluiceError, match="did not go as planned: day 2"):
        rehearsed(monkeypatch, tmp_path, days)
