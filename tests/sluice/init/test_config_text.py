from __future__ import annotations

import re
from pathlib import Path

import pytest

from contracts.config.config import Config, parse
from sluice.init.column_types import typed_columns
from sluice.init.config_text import config_text
from sluice.init.role_guess import guess
from sluice.init.table_text import WIDTH
from sluice.table_samples.table_sample import read_sample
from tests.sluice.unlike_files import dates_as_text, lists, no_header, odd_separator


def written(path: Path) -> tuple[str, Config]:
    sample = read_sample(path)
    text = config_text("made", sample, guess(typed_columns(sample), None))
    return text, parse(text)


def test_a_file_without_a_header_gets_names_and_its_mark_of_the_missing(tmp_path: Path) -> None:
    _, config = written(no_header(tmp_path))
    assert config.log.options == {"sep": "\t", "nullValue": "?"}
    assert config.log.schema_ddl == "c0 DOUBLE, c1 DOUBLE, c2 STRING, c3 STRING"
    assert config.label.expression == "c0 = 1"
    assert config.windows.statistics == 0


def test_odd_names_are_quoted_and_read_under_plain_ones(tmp_path: Path) -> None:
    _, config = written(odd_separator(tmp_path))
    assert config.log.derive == {
        "home_city": "`home.city`", "list_price": "try_cast(replace(`list price`, ',', '.') AS DOUBLE)", "day_": "day",
    }
    assert config.label.expression == "bought = 'ja'"


def test_dates_become_the_time_of_the_event_and_fields_of_it(tmp_path: Path) -> None:
    _, config = written(dates_as_text(tmp_path))
    assert (config.log.event_time, config.log.user_id, config.log.item_id) == ("event_time", "user_id", "item_id")
    assert config.log.derive["event_time"] == "try_to_timestamp(when_shown, 'd/M/yyyy H:mm')"
    assert {"event_hour", "event_weekday"} <= {field.name for field in config.fields}
    assert {field.name: field.side for field in config.fields}["shelf"] == "item"


def test_whole_numbers_with_a_point_lose_it_as_keys_and_stay_numbers_else(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    rows = (f"{row % 7}.0,{row % 11}.0,{(row * 7919) % 900}.0,{1 + row % 5}.0,{1_767_600_000 + 60 * row}"
            for row in range(400))
    path.write_text("user_id,item_id,price,rating,timestamp\n" + "\n".join(rows) + "\n")
    _, config = written(path)
    assert {name for name, read in config.log.derive.items() if "regexp_replace" in read} == {"user_id", "item_id"}
    assert config.log.schema_ddl == "user_id STRING, item_id STRING, price DOUBLE, rating DOUBLE, timestamp STRING"
    assert config.label.expression == "rating >= 4"


def test_fields_of_the_time_have_names_of_their_own(tmp_path: Path) -> None:
    path = dates_as_text(tmp_path)
    path.write_text(path.read_text().replace("shelf", "event_hour", 1))
    _, config = written(path)
    assert {"event_hour", "event_hour_derived", "event_weekday"} <= {field.name for field in config.fields}
    assert config.log.derive["event_hour_derived"] == "hour(event_time)"


@pytest.mark.parametrize(("user", "idle"), [("user_id", False), ("colour", True)])
def test_a_statistics_window_that_nothing_reads_trains(user: str, idle: bool, tmp_path: Path) -> None:
    path = dates_as_text(tmp_path)
    path.write_text(path.read_text().replace("user_id", user, 1))
    _, config = written(path)
    assert config.log.event_time
    assert (config.windows.statistics == 0) is idle
    assert any(field.kind == "counter" for field in config.fields) is not idle


def test_a_log_of_positives_alone_has_no_rates_and_no_statistics_window(tmp_path: Path) -> None:
    path = tmp_path / "taken.csv"
    path.write_text("user_id,item_id,time\n" + "".join(
        f"u{row % 60},i{row * 7919 % 89},{1_772_323_200 + 900 * row}\n" for row in range(3000)))
    _, config = written(path)
    assert (config.label.positives_only, config.windows.statistics) == (True, 0)
    assert [field.statistics for field in config.fields if field.kind == "counter"] == [("count",)]


def test_lists_of_parquet_keep_their_type(tmp_path: Path) -> None:
    text, config = written(lists(tmp_path))
    tags = next(field for field in config.fields if field.name == "tags")
    assert (tags.kind, tags.length, tags.key_type) == ("multi_valued", 3, "string")
    assert "# Left out: vector: type list<element: double> is no kind of field" in text


@pytest.mark.parametrize("make", [no_header, odd_separator, dates_as_text, lists])
def test_every_field_stands_below_its_reason_and_no_line_is_long(make, tmp_path: Path) -> None:
    text, _ = written(make(tmp_path))
    comments = [line for line in text.splitlines() if line.startswith("#")]
    assert max(map(len, comments)) <= WIDTH + 2
    assert all(above.startswith("#") for above in re.findall(r"(.*)\n\[\[fields\]\]\n(?!name = .event_hour)", text))


def test_texts_that_would_break_toml_are_escaped(tmp_path: Path) -> None:
    path = tmp_path / 'a "quoted" \\ name.csv'
    path.write_text('x "y",label\n' + "".join(f"v{row % 5},{row % 2}\n" for row in range(200)))
    _, config = written(path)
    assert config.log.path.endswith('a "quoted" \\ name.csv')


@pytest.mark.parametrize(("name", "mark", "derive"), [
    ("bid", "", None), ("max bid", "$", "try_cast(regexp_replace(`max bid`, '[^0-9.+-]', '') AS DOUBLE)"),
])
def test_a_bid_is_read_as_a_number_and_no_field(name: str, mark: str, derive: str | None, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(f"ad_id,{name},site,click\n" + "".join(
        f"a{row % 7},{mark}{1 + row % 7 / 10},s{row % 3},{row % 2}\n" for row in range(300)))
    text, config = written(path)
    plain = name.replace(" ", "_")
    assert (config.log.bid, config.log.derive.get(plain)) == (plain, derive)
    assert ("bid DOUBLE" in str(config.log.schema_ddl)) == (derive is None)
    assert plain not in {field.name for field in config.fields}
    assert "# bid: its name, and values from 1.0 to 1.6: taken for what a click pays" in text
