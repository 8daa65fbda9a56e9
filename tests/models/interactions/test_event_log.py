from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from contracts.artifacts import Artifacts
from contracts.errors import DataError
from contracts.windows import TimedWindows
from models.interactions.event_log import read

START = datetime(2026, 1, 1, tzinfo=UTC)
SPANS = {"train": (0, 10), "validation": (10, 14), "test": (14, 20)}
Row = tuple[str | None, str | None, float, float, float]  # user, item, label, day, the day on which it is known


def write(folder: Path, rows: list[Row], clicked: list[float] | None = None) -> Artifacts:
    out = Artifacts(folder)
    day = lambda value: START + timedelta(days=value)  # noqa: E731
    TimedWindows(spans={name: (day(start), day(end)) for name, (start, end) in SPANS.items()}).write(out.windows)
    user, item, label, at, known = zip(*rows, strict=True)
    moments = pa.timestamp("us", "UTC")
    table = pa.table({
        "_user": pa.array(user, pa.string()), "_item": pa.array(item, pa.string()), "_label": pa.array(label),
        "_time": pa.array([day(one) for one in at], moments), "_known": pa.array([day(one) for one in at], moments),
        "_label_time": pa.array([day(one) for one in known], moments)})
    if clicked:
        table = table.append_column("_click_time", pa.array([day(one) for one in clicked], moments))
    (out.events / "day=2026-01-01").mkdir(parents=True)
    pq.write_table(table, out.events / "day=2026-01-01" / "part.parquet")
    return out


ROWS: list[Row] = [
    ("ann", "b", 1, 2, 2), ("ann", "a", 1, 1, 1), ("ann", "c", 0, 3, 3), ("bob", "a", 1, 4, 4), (None, "a", 1, 4, 4),
    ("bob", "b", 1, 9, 12), ("ann", "a", 1, 11, 11), ("bob", "late", 1, 12, 12), ("bob", "b", 1, 13, 13),
    ("ann", "b", 1, 15, 15),
]


def keys(log, actions, user):
    return [str(log.items.key(place - 2)) for place in actions.of(user)]


def test_training_is_what_was_taken_and_known_before_validation(tmp_path):
    log = read(write(tmp_path, ROWS), repeat=False)
    assert keys(log, log.split.train, 0) == ["a", "b"]
    assert keys(log, log.split.train, 1) == ["a"]  # b became known on day 12


def test_validation_asks_for_first_takes_of_known_items(tmp_path):
    log = read(write(tmp_path, ROWS), repeat=False)
    targets = log.split.validation.targets
    assert keys(log, targets, 0) == []  # ann had taken a before
    assert keys(log, targets, 1) == ["b"]


def test_the_order_is_that_of_the_clicks_own_times(tmp_path):
    rows: list[Row] = [("ann", "a", 1, 1, 1), ("ann", "b", 1, 2, 2), ("ann", "c", 1, 3, 3)]
    log = read(write(tmp_path, rows, clicked=[5, 2, 4]), repeat=False)
    assert keys(log, log.split.validation.history, 0) + keys(log, log.split.validation.targets, 0) == ["b", "c"]


def test_files_in_another_order_are_the_same_log(tmp_path):
    one, other = (read(write(tmp_path / name, rows), repeat=False).split.train
                  for name, rows in (("one", ROWS), ("other", ROWS[::-1])))
    assert one.items.tolist() == other.items.tolist()


def test_a_log_without_order_is_refused(tmp_path):
    with pytest.raises(DataError, match="nobody took two items"):
        read(write(tmp_path, [("ann", "a", 1, 1, 1), ("bob", "a", 1, 2, 2)]), repeat=False)


def test_columns_are_told_as_text_by_the_values_of_training(tmp_path):
    out = write(tmp_path, ROWS)
    path = out.events / "day=2026-01-01" / "part.parquet"
    stars = pa.array([5, 4, 1, 5, 5, 3, 4, 2, None, 5])  # 3 and 2 are of rows that are no training
    pq.write_table(pq.read_table(path).append_column("stars", stars), path)
    log = read(out, repeat=False, gaps=True, columns=["stars"])
    assert log.columns["stars"].keys().to_pylist() == ["4", "5"]
    train, targets = log.split.train.told, log.split.validation.targets.told
    assert train is not None
    assert targets is not None
    assert train.gaps
    assert train.values.tolist() == [[2], [3], [3]]  # ann: a, b; bob: a
    assert targets.values.tolist() == [[1]]
    assert read(out, repeat=False).split.train.told is None
    with pytest.raises(DataError, match=r"'moons' of retrieve\.events"):
        read(out, repeat=False, columns=["moons"])
