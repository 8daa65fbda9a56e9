from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from contracts.config.section import instant
from contracts.errors import ConfigError
from serving.access.access_file import read
from serving.access.callers import Callers
from serving.access.new_token import entry, make, write


def test_a_made_token_is_known_by_its_lines(tmp_path: Path) -> None:
    made, ends = make(), datetime(2100, 1, 1, tzinfo=UTC)
    (tmp_path / "access.toml").write_text(entry(made, 'the "shop"', ["ranking", "catalogue"], ends))
    found = read(tmp_path / "access.toml")
    assert found.tokens[0].expires == ends
    assert made not in (tmp_path / "access.toml").read_text()
    assert Callers(found).of(made).name == 'the "shop"'


@pytest.mark.parametrize("name", ["x", 80 * "\U0001f600", "B\u00fccher \\ \"neu\"", "\u2028"])
def test_what_is_printed_of_a_name_is_read_as_that_name(tmp_path: Path, name: str) -> None:
    (tmp_path / "access.toml").write_text(entry(make(), name, ["ranking"], None), encoding="ascii")
    assert read(tmp_path / "access.toml").tokens[0].name == name


@pytest.mark.parametrize(("name", "why"), [
    ("", "has 0 characters, an access file takes 1 to 80; give another"), (81 * "x", "has 81 characters"),
    ("shop\x7f", r"holds the control character '\\x7f', which is none of a name; leave"),
    ("a\nb", "holds the control character"), ("\udc80", "holds the control character")])
def test_a_name_that_the_access_file_would_refuse_is_refused(name: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        entry(make(), name, ["ranking"], None)


def test_a_token_is_its_owners_alone_and_no_file_is_overwritten(tmp_path: Path) -> None:
    write("made", tmp_path / "token")
    assert (tmp_path / "token").stat().st_mode & 0o777 == 0o600
    with pytest.raises(ConfigError, match="new file"):
        write("other", tmp_path / "token")
    assert (tmp_path / "token").read_text() == "made\n"


@pytest.mark.parametrize("told", ["0027-06-30", "0999-12-31T23:59:59", "9999-12-31", "2100-01-01T00:00:00+05:30"])
def test_any_year_of_an_end_is_read_as_that_year(tmp_path: Path, told: str) -> None:
    (tmp_path / "access.toml").write_text(entry(make(), "shop", ["ranking"], instant(told)))
    assert read(tmp_path / "access.toml").tokens[0].expires == instant(told)


@pytest.mark.parametrize("told", ["0001-01-01T00:00:00+05:00", "9999-12-31T23:59:59-05:00"])
def test_an_end_that_is_no_year_of_utc_is_refused(told: str) -> None:
    with pytest.raises(ConfigError, match="lies in no year of UTC"):
        entry(make(), "shop", ["ranking"], instant(told))


def test_tokens_differ_and_roles_exist() -> None:
    assert len({make() for _ in range(100)}) == 100
    with pytest.raises(ConfigError, match="no role 'king'"):
        entry("made", "shop", ["king"], None)
