from __future__ import annotations

from pathlib import Path

import pytest

from contracts.config.config import Config, parse
from contracts.errors import DataError
from contracts.features.found_crosses import FILE, FoundCross, FoundCrosses, add_found_crosses, cross_name, read

TOML = """
name = "t"
log = { path = "x", event_time = "t", item_id = "i" }
label = { expression = "y" }
fields = [
 { name = "a", kind = "categorical", side = "user" },
 { name = "b", kind = "categorical", side = "item" },
 { name = "n", kind = "numeric", side = "item", granularities = [10] },
 { name = "c", kind = "counter", side = "item", by = ["b"], windows = ["2d"] },
 { name = "known", kind = "cross", side = "cross", parts = ["a", "b"] },
]
"""


def found(*parts: tuple[str, ...]) -> FoundCrosses:
    crosses = (FoundCross(name=cross_name(p), parts=p, importance=0.9, gain=5.0, support=7, min_count=3) for p in parts)
    return FoundCrosses(digest="d", crosses=tuple(crosses))


@pytest.fixture
def config() -> Config:
    return parse(TOML)


def test_found_crosses_become_fields(config: Config, tmp_path: Path) -> None:
    found(("a", "n#10")).write(tmp_path)
    added = add_found_crosses(config, tmp_path).fields[-1]
    assert (added.name, added.kind, added.side, added.parts, added.min_count) == (
        "a_x_n_10", "cross", "cross", ("a", "n#10"), 3)


@pytest.mark.parametrize("part", ["c_rate_2d#10", "c_count_2d#10", "n#10", "b"])
def test_every_kind_of_part_that_a_search_names_is_a_field(config: Config, tmp_path: Path, part: str) -> None:
    found(("a", part)).write(tmp_path)
    fields = add_found_crosses(config, tmp_path).fields
    assert fields[-1].parts == ("a", part) or part == "b"


def test_what_is_written_is_what_is_read(tmp_path: Path) -> None:
    crosses = found(("a", "n#10"), ("b", "a"))
    crosses.write(tmp_path)
    assert read(tmp_path) == crosses


def test_without_a_search_nothing_changes(config: Config, tmp_path: Path) -> None:
    assert read(tmp_path) is None
    assert add_found_crosses(config, tmp_path) == config


def test_a_budget_of_nothing_takes_no_crosses(config: Config, tmp_path: Path) -> None:
    found(("a", "n#10")).write(tmp_path)
    none = config.model_copy(update={"crosses": config.crosses.model_copy(update={"budget": 0})})
    assert add_found_crosses(none, tmp_path) == none


def test_a_configured_cross_is_not_added_again(config: Config, tmp_path: Path) -> None:
    found(("b", "a")).write(tmp_path)
    assert add_found_crosses(config, tmp_path) == config


def test_a_cross_of_a_field_that_is_gone_is_refused(config: Config, tmp_path: Path) -> None:
    found(("a", "gone")).write(tmp_path)
    with pytest.raises(DataError, match=r"gone.*`sluice features` without --day.*`sluice crosses`"):
        add_found_crosses(config, tmp_path)


@pytest.mark.parametrize("part", ["gone", "n#7"])
def test_a_cross_that_does_not_fit_and_is_not_needed_is_left_out_with_a_warning(
    config: Config, tmp_path: Path, part: str, caplog: pytest.LogCaptureFixture,
) -> None:
    misfit = cross_name(("a", part))
    found(("a", part), ("a", "n#10")).write(tmp_path)
    assert [field.name for field in add_found_crosses(config, tmp_path, ()).fields[-2:]] == ["known", "a_x_n_10"]
    assert [misfit in record.getMessage() for record in caplog.records] == [True]
    with pytest.raises(DataError, match=misfit):
        add_found_crosses(config, tmp_path, {misfit})


def test_a_broken_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("{}")
    with pytest.raises(DataError, match=r"sluice crosses"):
        read(tmp_path)
