from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from contracts.errors import DataError
from contracts.windows import HashedShares, TimedWindows, read, read_hashed, read_timed

START = datetime(2026, 1, 5, tzinfo=UTC)
TIMED = TimedWindows(spans={"train": (START, START + timedelta(microseconds=1)),
                            "test": (START + timedelta(days=1), START + timedelta(days=2))})
HASHED = HashedShares(seed=7, shares={"train": 0.75, "validation": 0.25}, test_rows=True)


def test_windows_come_back_as_they_were_written(tmp_path: Path) -> None:
    made: tuple[TimedWindows | HashedShares, ...] = (TIMED, HASHED)
    for number, windows in enumerate(made):
        path = tmp_path / "ingest" / f"{number}.json"
        windows.write(path)
        assert read(path) == windows
        assert json.loads(path.read_text()) == windows.plain()
    assert read_timed(tmp_path / "ingest" / "0.json") == TIMED.spans
    assert read_hashed(tmp_path / "ingest" / "1.json") == HASHED


def test_moments_are_written_in_utc_to_the_microsecond() -> None:
    assert TIMED.plain()["train"] == ["2026-01-05T00:00:00+00:00", "2026-01-05T00:00:00.000001+00:00"]


def test_a_missing_file_is_none_or_says_what_to_run(tmp_path: Path) -> None:
    assert read(tmp_path / "w.json") is None
    for reader in (read_timed, read_hashed):
        with pytest.raises(DataError, match="run `sluice features` first"):
            reader(tmp_path / "w.json")


def test_windows_of_the_other_kind_are_refused(tmp_path: Path) -> None:
    TIMED.write(tmp_path / "timed.json")
    HASHED.write(tmp_path / "hashed.json")
    with pytest.raises(DataError, match="has no hashed windows"):
        read_hashed(tmp_path / "timed.json")
    with pytest.raises(DataError, match="has windows by hash"):
        read_timed(tmp_path / "hashed.json")


@pytest.mark.parametrize("text", ["", "3", '{"train": 0.8}', '{"seed": 1}', '{"train": ["soon", "later"]}'])
def test_a_file_of_something_else_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "w.json").write_text(text)
    with pytest.raises(DataError, match="holds no windows"):
        read(tmp_path / "w.json")
