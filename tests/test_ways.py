"""docs/concepts/ways.md: each way is short, its files hold what it says, and each is reached from one before it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import pytest

from sluice.dev.rooms import imported_modules

ROOT = Path(__file__).resolve().parents[1]
LONGEST = 12


class Stop(NamedTuple):
    file: Path
    name: str
    reached: str

    @property
    def text(self) -> str:
        return self.file.read_text(encoding="utf-8")

    @property
    def module(self) -> str:
        return ".".join(self.file.relative_to(ROOT).with_suffix("").parts)


def ways() -> dict[str, list[Stop]]:
    found: dict[str, list[Stop]] = {}
    for line in (ROOT / "docs" / "concepts" / "ways.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            found[line[3:]] = []
        row = re.match(r"\| \d+ \| `(\S+)` \| `(\w+)` \|\s*(\S*)\s*\|", line)
        if row:
            list(found.values())[-1].append(Stop(ROOT / row[1], row[2], row[3]))
    return found


def joined(one: Stop, other: Stop) -> bool:
    """One imports the other."""
    return other.module in imported_modules(one.text) or one.module in imported_modules(other.text)


WAYS = ways()


def test_both_ways_are_written_down():
    assert len(WAYS) == 2
    assert all(1 < len(stops) <= LONGEST for stops in WAYS.values())


@pytest.mark.parametrize("way", WAYS)
def test_each_file_holds_what_the_way_names(way):
    missing = [stop for stop in WAYS[way] if not re.search(rf"(def|class) {stop.name}\b", stop.text)]
    assert missing == []


@pytest.mark.parametrize("way", WAYS)
def test_each_file_is_reached_from_one_before_it(way):
    stops = WAYS[way]
    for place, stop in enumerate(stops[1:], start=1):
        if stop.reached.isdigit():
            assert int(stop.reached) <= place, stop
            assert joined(stop, stops[int(stop.reached) - 1]), stop
        else:
            artifact = stop.reached.strip("`")
            assert artifact in stop.text, stop
            assert any(artifact in before.text for before in stops[:place]), stop


def test_files_without_an_import_between_them_are_not_joined():
    crosses, rates = WAYS.values()
    assert not joined(crosses[0], rates[0])
