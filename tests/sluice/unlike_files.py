"""Five tables that have little in common but that a click depends on what they say."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq


def _clicks(random: np.random.Generator, strength: np.ndarray) -> np.ndarray:
    return random.random(len(strength)) < 1 / (1 + np.exp(1.0 - strength))


def no_header(folder: Path, rows: int = 900) -> Path:
    """Label first, numbers with holes, hex keys, tab-separated, a question mark for what is missing."""
    random = np.random.default_rng(1)
    amount, key = random.gamma(2, 30, rows).round(2), random.integers(0, 8, rows)
    clicked = _clicks(random, np.where(key < 4, 1.5, -1.0))
    path = folder / "no_header.tsv"
    lines = (f"{int(c)}\t{'?' if row % 9 == 0 else a}\tk{k:04x}\t{row % 3}"
             for row, (c, a, k) in enumerate(zip(clicked, amount, key, strict=True)))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def odd_separator(folder: Path, rows: int = 900) -> Path:
    """Semicolons, decimal commas, quotes inside quotes, names with stops and blanks, Latin-1."""
    random = np.random.default_rng(2)
    price, city = random.normal(20, 5, rows), random.choice(["Köln", "Paris", "Rome"], rows)
    bought = _clicks(random, (city == "Rome") * 2.0 + (price < 20))
    path = folder / "odd separator.csv"
    lines = (f'"{c} ""old"" town";{str(round(p, 2)).replace(".", ",")};{"ja" if b else "nein"};{row % 2}'
             for row, (c, p, b) in enumerate(zip(city, price, bought, strict=True)))
    path.write_bytes(("home.city;list price;bought;day\n" + "\n".join(lines) + "\n").encode("latin-1"))
    return path


def dates_as_text(folder: Path, rows: int = 1500) -> Path:
    """A log of users and items with day, month and year in that order."""
    random = np.random.default_rng(3)
    start = datetime(2026, 1, 5, tzinfo=UTC)
    minutes = np.sort(random.integers(0, 30 * 24 * 60, rows))
    user, item = random.integers(0, 60, rows), random.integers(0, 40, rows)
    clicked = _clicks(random, np.where(item % 2 == 0, 1.5, -1.0))
    path = folder / "dates.csv"
    lines = (f"{start + timedelta(minutes=int(m)):%d/%m/%Y %H:%M},u{u},i{i},{'AB'[i % 2]},{20 + u % 50},{int(c)}"
             for m, u, i, c in zip(minutes, user, item, clicked, strict=True))
    path.write_text("when_shown,user_id,item_id,shelf,age,clicked\n" + "\n".join(lines) + "\n", encoding="utf-8")
    return path


def large(folder: Path, rows: int = 2_000_000) -> Path:
    """Written in pieces; every value is small."""
    random = np.random.default_rng(4)
    path = folder / "large.csv"
    with path.open("w", encoding="utf-8") as file:
        file.write("target,size,colour,shop\n")
        for _ in range(rows // 100_000):
            colour, shop = random.integers(0, 5, 100_000), random.integers(0, 300, 100_000)
            size = random.normal(10, 3, 100_000).round(1)
            target = _clicks(random, (colour == 1) * 2.0 - (size > 12)).astype(int)
            file.writelines(f"{t},{s},c{c},{h}\n" for t, s, c, h in zip(target, size, colour, shop, strict=True))
    return path


def lists(folder: Path, rows: int = 900) -> Path:
    """Parquet with a column of lists, one of vectors, one of structs, booleans and an odd name."""
    random = np.random.default_rng(5)
    tags = [[str(tag) for tag in random.choice(list("abcdef"), random.integers(0, 4), replace=False)]
            for _ in range(rows)]
    liked = _clicks(random, np.array(["a" in found for found in tags]) * 3.0 - 1.0)
    path = folder / "lists.parquet"
    pq.write_table(pa.table({
        "tags": tags, "liked": liked, "weight": random.normal(size=rows), "is new": random.random(rows) < 0.5,
        "vector": random.normal(size=(rows, 2)).tolist(), "where": [{"x": row} for row in range(rows)],
    }), path)
    return path


UNLIKE = (no_header, odd_separator, dates_as_text, large, lists)
