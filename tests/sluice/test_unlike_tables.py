"""Ten unlike tables: what `sluice init` takes each column for."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console

from benchmarks.pipelines.made_tables import access, clicks
from sluice.commands.init_command import WrittenConfig, write_config

ROWS = 2000
Random = np.random.Generator


def csv(path: Path, **columns: object) -> Path:
    rows = zip(*(np.asarray(values).tolist() for values in columns.values()), strict=True)
    path.write_text("\n".join([",".join(columns), *(",".join(map(str, row)) for row in rows)]) + "\n")
    return path


def clicked(random: Random, strength: np.ndarray) -> np.ndarray:
    return (random.random(len(strength)) < 1 / (1 + np.exp(-strength))).astype(int)


def postal_codes(path: Path, random: Random) -> Path:
    zips = random.integers(1_000, 99_999, 400)[random.integers(0, 400, ROWS)]
    return csv(path, zip=zips, colour=random.integers(0, 4, ROWS), target=clicked(random, (zips > 50_000) * 2.0 - 1))


def years(path: Path, random: Random) -> Path:
    built = random.normal(1985, 14, ROWS).astype(int)
    return csv(path, built_year=built, kind=random.integers(0, 5, ROWS), sold=clicked(random, (built - 1985) / 14),
               target=clicked(random, (built - 1985) / 7))


def counts(path: Path, random: Random) -> Path:
    visits, orders = random.geometric(0.02, ROWS), random.geometric(0.04, ROWS)
    return csv(path, c_visits=visits, x=orders, target=clicked(random, np.log(visits / orders)))


def prices(path: Path, random: Random) -> Path:
    cents = random.integers(1, 90, ROWS) * 50 - 1
    marked = [f"${amount:.2f}" for amount in random.lognormal(3, 1, ROWS)]
    plain = random.lognormal(3, 1, ROWS).round(2)
    return csv(path, y1=cents, y2=marked, y3=plain, target=clicked(random, cents / 1000 - 2))


def hashed(path: Path, random: Random) -> Path:
    publisher, place = random.integers(0, 60, ROWS), random.integers(0, 200, ROWS)
    words = [f"{value * 2_654_435_761 % 2**32:08x}" for value in publisher]
    return csv(path, x1=words, x2=place * 7_919_104_729_021 + 11,
               x3=random.permutation(ROWS) * 7_919_104_729 + 10**13, target=clicked(random, publisher / 20 - 1.5))


def codes_with_holes(path: Path, random: Random) -> Path:
    """As a data frame writes whole numbers where some are missing."""
    shop = random.choice(90_000, 120)[random.integers(0, 120, ROWS)]
    floats = [None if row % 9 == 0 else float(value) for row, value in enumerate(shop)]
    target = clicked(random, shop % 7 - 3.0)
    pq.write_table(pa.table({"q1": floats, "q2": random.normal(size=ROWS), "target": target}), path)
    return path


def amounts_as_codes(path: Path, random: Random) -> Path:
    """A rise, and values that stand out: both at once."""
    gain = random.integers(0, 400, ROWS * 4)
    chance = np.where(gain % 10 == 3, 0.95, 0.1 + gain / 600)
    return csv(path, q=gain, w=random.integers(0, 3, ROWS * 4), target=(random.random(ROWS * 4) < chance).astype(int))


def late_columns(path: Path, random: Random) -> Path:
    """A reason that is there for the refused alone, and the label again as text."""
    target, colour = random.integers(0, 2, ROWS), random.integers(0, 9, ROWS)
    return csv(path, colour=colour, reason=["" if one else f"r{row % 5}" for row, one in enumerate(target)],
               state=["accepted" if one else "refused" for one in target], target=target)


Kinds = dict[str, str]
TABLES: list[tuple[Callable[[Path, Random], Path], Kinds, tuple[str, ...]]] = [
    (lambda path, random: access(path, 9000), dict.fromkeys(
        ("RESOURCE", "MGR_ID", "ROLE_ROLLUP_1", "ROLE_ROLLUP_2", "ROLE_DEPTNAME", "ROLE_TITLE", "ROLE_FAMILY_DESC",
         "ROLE_FAMILY", "ROLE_CODE"), "categorical"), ()),
    (lambda path, random: clicks(path, 9000), dict.fromkeys(
        ("ip", "app", "device", "os", "channel", "event_hour", "event_weekday"), "categorical"), ("attributed_time",)),
    (postal_codes, {"zip": "categorical", "zip_area": "categorical", "zip_value": "numeric", "colour": "categorical"},
     ()),
    (years, {"built_year": "numeric", "kind": "categorical", "sold": "categorical"}, ()),
    (counts, {"c_visits": "numeric", "x": "numeric"}, ()),
    (prices, {"y1": "numeric", "y2": "numeric", "y3": "numeric"}, ()),
    (hashed, {"x1": "categorical", "x2": "categorical"}, ("x3",)),
    (codes_with_holes, {"q1": "categorical", "q2": "numeric"}, ()),
    (amounts_as_codes, {"q": "categorical", "q_value": "numeric", "w": "categorical"}, ()),
    (late_columns, {"colour": "categorical"}, ("reason", "state")),
]


@pytest.mark.parametrize(("make", "kinds", "left_out"), TABLES)
def test_columns_are_taken_for_what_they_are(
    make: Callable[[Path, Random], Path], kinds: Kinds, left_out: tuple[str, ...], tmp_path: Path
) -> None:
    path = make(tmp_path / "table", np.random.default_rng(11))
    found: WrittenConfig = write_config(path, tmp_path / "made.toml", None, False, Console(file=io.StringIO()))
    assert found.fields == kinds
    assert tuple(found.left_out) == left_out
