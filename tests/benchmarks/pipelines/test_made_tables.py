from __future__ import annotations

import csv
from pathlib import Path

from benchmarks.pipelines.made_tables import access, clicks, plain


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))


def test_role_codes_have_five_and_six_digits_and_recur(tmp_path: Path) -> None:
    rows = rows_of(access(tmp_path / "a.csv", 3000))
    assert len(rows) == 3000
    assert all(4 <= len(row["ROLE_TITLE"]) <= 6 for row in rows)
    assert len({row["ROLE_TITLE"] for row in rows}) < 350
    assert 0.88 < sum(row["ACTION"] == "1" for row in rows) / 3000 < 0.98


def test_only_positives_have_a_time_of_download_and_one_seed_gives_one_table(tmp_path: Path) -> None:
    rows = rows_of(clicks(tmp_path / "a.csv", 2000))
    assert {bool(row["attributed_time"]) == (row["is_attributed"] == "1") for row in rows} == {True}
    assert rows == rows_of(clicks(tmp_path / "b.csv", 2000))


def test_a_plain_table_has_words_numbers_and_both_labels(tmp_path: Path) -> None:
    rows = rows_of(plain(tmp_path / "a.csv", 2000))
    assert {len(row) for row in rows} == {12}
    assert 0.1 < sum(row["subscribed"] == "yes" for row in rows) / 2000 < 0.9
    assert all(18 <= int(row["age"]) < 90 and float(row["balance"]) > 0 for row in rows)
    assert rows == rows_of(plain(tmp_path / "b.csv", 2000))
