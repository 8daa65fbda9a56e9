from __future__ import annotations

from pathlib import Path

from contracts import artifacts
from contracts.artifacts import DAY, FRESH, ID_PREFIX, WINDOWS, Artifacts

OUT = Artifacts(Path("out"))


def test_no_two_jobs_write_to_the_same_place_and_none_outside_the_folder() -> None:
    places = [getattr(OUT, name) for name, kind in vars(Artifacts).items() if isinstance(kind, property)]
    places += [OUT.examples(window) for window in WINDOWS] + [OUT.model("dnn"), OUT.model("two_tower")]
    assert len(set(places)) == len(places)
    assert all(OUT.out in place.parents for place in places)


def test_reserved_columns_differ_and_start_with_an_underscore() -> None:
    """Which no configured field does."""
    names = [value for name, value in vars(artifacts).items() if isinstance(value, str) and name.isupper()]
    columns = [name for name in names if name not in (DAY, FRESH, ID_PREFIX) and "." not in name]
    assert len(set(columns)) == len(columns) > 10
    assert all(column.startswith("_") for column in columns)
