from __future__ import annotations

from pathlib import Path

import pytest

from contracts.config.config import Config, parse
from sluice.init.column_types import typed_columns
from sluice.init.config_text import config_text
from sluice.init.role_guess import guess
from sluice.table_samples.table_sample import read_sample

NAMES = "user_id,item_id,shelf,shown_at,clicked"
DAY = 86_400


def written(tmp_path: Path, hours: float, header: str = NAMES, users: int = 30) -> Config:
    path = tmp_path / "log.csv"
    rows = (f"u{row % users},i{row % 37},s{row % 37 % 5},{1_760_000_000 + int(row * hours * 3600)},{row * row % 7 % 2}"
            for row in range(1200))
    path.write_text(header + "\n" + "\n".join(rows) + "\n")
    sample = read_sample(path)
    return parse(config_text("made", sample, guess(typed_columns(sample), None)))


@pytest.mark.parametrize(("hours", "windows", "publish"), [
    (2.4, (7 * DAY, 120 * DAY), DAY), (0.2, (DAY, 10 * DAY), DAY), (0.04, (6 * 3600, 2 * DAY), 3600),
])
def test_windows_follow_the_span_of_the_log(
    hours: float, windows: tuple[int, ...], publish: int, tmp_path: Path
) -> None:
    config = written(tmp_path, hours)
    counters = {field.name: field for field in config.fields if field.kind == "counter"}
    assert counters.keys() == {"item_history", "user_history", "shelf_history"}
    assert {field.windows for field in counters.values()} == {windows}
    assert config.features.publish_every == publish


def test_users_who_come_once_have_no_history(tmp_path: Path) -> None:
    assert not [field.name for field in written(tmp_path, 1.0, users=1200).fields if field.kind == "sequence"]


def test_without_users_there_is_none(tmp_path: Path) -> None:
    config = written(tmp_path, 1.0, "a,item_id,shelf,shown_at,clicked")
    assert {field.kind for field in config.fields} == {"categorical"}


def test_names_that_the_log_has_are_left_to_it(tmp_path: Path) -> None:
    config = written(tmp_path, 1.0, "user_id,item_id,item_history,shown_at,clicked")
    assert {"item_history", "item_history_derived"} <= {field.name for field in config.fields}


@pytest.mark.parametrize("last", ["clicked", "level"])
def test_few_users_and_items_are_spared_the_searches(last: str, tmp_path: Path) -> None:
    config = written(tmp_path, 1.0, f"user_id,item_id,shelf,shown_at,{last}")
    assert config.label.positives_only == (last == "level")
    assert (config.crosses.budget, config.prerank.kind) == (0, "towers")
