"""Texts of JSON objects -> the values of their keys, as texts, as Spark's from_json reads them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import islice
from typing import Any

from contracts.table_files import json_object

MOSTLY, MOST_KEYS, LOOKED_AT = 0.97, 12, 200
PLAIN = (str, int, float, bool)


def json_keys(cells: Sequence[str | None]) -> dict[str, list[str]]:
    """Key -> its text in every row, "" where there is none: of the first MOST_KEYS keys whose values are texts, numbers
    or truths. Empty unless at least MOSTLY of the texts that are there are objects."""
    known = [cell for cell in cells if cell and cell.strip()]
    looks = sum(cell.strip()[0] == "{" for cell in islice(known, LOOKED_AT))
    if not known or looks < MOSTLY * min(len(known), LOOKED_AT):
        return {}
    objects = [json_object(cell) if cell else None for cell in cells]
    if sum(one is not None for one in objects) < MOSTLY * len(known):
        return {}
    rows = [one or {} for one in objects]
    keys = dict.fromkeys(key for row in rows for key, value in row.items() if key and value is not None)
    plain = [key for key in keys if "`" not in key and "'" not in key and "\\" not in key
             and all(isinstance(row.get(key, ""), PLAIN) or row[key] is None for row in rows)]
    return {key: [_text(row.get(key)) for row in rows] for key in plain[:MOST_KEYS]}


def _text(value: Any) -> str:
    return "" if value is None else value if isinstance(value, str) else json.dumps(value)
