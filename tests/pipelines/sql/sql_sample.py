"""A table with columns of every type, whose edge values come first and random ones after: what SQL cases are run on.

    t, u text; n text that is mostly no number; q text of whole numbers; w, v, z text that is mostly a time; js JSON
    i, j, p int (j and p without 0); l, k bigint (k: seconds since 1970); sm smallint; ti tinyint
    x double without NaN; y double; f float; e decimal(10,2); g decimal(18,6); b, c boolean
    ts, tz timestamp; d date; by binary; a, h array<int>; s array<string>; r array<double>; m map; o struct
    y0, m0, d0: year, month, day, some of which are no date

Years are those that both engines compute with everywhere, 1678 to 2261.
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import cycle, islice
from typing import Any

import numpy as np
import pyarrow as pa

RANDOM_ROWS = 300
NAN, INF = float("nan"), float("inf")
TEXTS: dict[str, list[str | None]] = {
    "t": [None, "", "  Ab ", "ÄÖü ß", "日本語テキスト", "a|b,c;d", "100% sure_", "x\ny\tz", "Hello World",
          "'quoted' \\ back", "İstanbul é", "ab12cd34"],
    "u": [None, "a", "b", "ü", "日本", "|", "%_", "y", "hello", "'", "É", "2cd"],
    "n": [None, "", "1", "-2", "3.5", " 4 ", "1e3", "abc", "9223372036854775807", "9223372036854775808", "NaN", "0x1F"],
    "q": ["1", "0", "-1", "42", " 7 ", "007", "2147483647", "-2147483648", "12", "5", None, "3"],
    "w": [None, "2024-02-29", "2024-02-29 12:30:15", "2024-02-29T12:30:15Z", "2024-02-29 12:30:15.123456",
          "2024-02-29T12:30:15+02:00", "2023-02-29", "1969-12-31 23:59:59.999999", "not a time", "", "2024-2-9 1:2:3",
          " 2024-02-29 "],
    "v": [None, "29/02/2024", "1/2/2024", "31/12/1969", "30/02/2024", "x", "", "29/02/2024 ", "01/01/2000",
          "12/11/2013", "15/07/2100", "9/9/1999"],
    "z": [None, "14102100", "14102923", "00010100", "69010112", "70010112", "x", "", "1410210", "141021000", "24022912",
          "99123123"],
    "js": [None, "{}", '{"a":1}', '{"a":"x","b":[1,2]}', '{"a":null}', '{"a":{"c":"ü"}}', "not json", "[1,2]",
           '{"a":1.50}', '{"a":true,"b":[]}', '{"b":[{"c":3}]}', '{"a":"q\\"uote"}'],
}
NUMBERS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "i": (pa.int32(), [None, 0, 1, -1, 7, -7, 2147483647, -2147483648, 100, 12345, -3, 31]),
    "j": (pa.int32(), [1, 2, 3, -1, -2, 7, 10, None, 5, -10, 13, 2]),
    "p": (pa.int32(), [1, 2, 3, -1, -2, 1, 10, None, 5, -10, 13, 2]),
    "l": (pa.int64(), [None, 0, 1, -1, 1 << 40, -(1 << 40), 2**63 - 1, 1 - 2**63, 1700000000, -1, 86399, -86401]),
    "k": (pa.int64(), [None, 0, 1, -1, 1582934400, -2208988800, 7258118399, 951782399, 1700000000, -9000000000, 86399,
                       -86401]),
    "sm": (pa.int16(), [None, 0, 1, -1, 32767, -32768, 5, 6, 7, 8, 9, 10]),
    "ti": (pa.int8(), [None, 0, 1, -1, 127, -128, 5, 6, 7, 8, 9, 10]),
    "x": (pa.float64(), [None, 0.0, -0.0, 1.5, -1.5, 2.5, -2.5, 0.1, 1e15, -1e-9, 123456.789, 0.1 + 0.2]),
    "y": (pa.float64(), [None, NAN, INF, -INF, 0.0, -0.0, 1.0, 1e308, 5e-324, -1e308, NAN, 0.3]),
    "f": (pa.float32(), [None, 0.0, -0.0, 1.5, 0.1, NAN, INF, -INF, 3.4e38, 1e-40, 16777216.0, -2.5]),
    "y0": (pa.int32(), [2024, 2023, 1970, 1969, 2000, 1900, 2024, None, 2199, 1700, 2021, 2024]),
    "m0": (pa.int32(), [2, 12, 1, 12, 2, 1, 2, 1, 12, 10, 1, 6]),
    "d0": (pa.int32(), [29, 31, 1, 31, 29, 1, 1, 1, 31, 15, 3, 30]),
}
DECIMALS = {
    "e": ((10, 2), [None, "0.00", "1.00", "-1.00", "1.25", "-1.25", "99999999.99", "-99999999.99", "2.50", "-2.50",
                    "0.05", "3.33"]),
    "g": ((18, 6), [None, "0.000000", "1.000001", "-1.000001", "123.456789", "0.500000", "1.500000", "2.500000",
                    "-0.500000", "999999999999.999999", "3.141593", "0.000001"]),
}
TIMES: dict[str, list[tuple[int, ...] | None]] = {
    "ts": [None, (1970, 1, 1), (1969, 12, 31, 23, 59, 59, 999999), (2000, 2, 29, 12, 30, 15, 123456), (2024, 2, 29),
           (2023, 12, 31, 23, 59, 59), (2026, 1, 4, 0, 0, 1), (1900, 1, 1, 1, 2, 3), (2025, 3, 30, 1, 30),
           (2199, 12, 31, 23, 59, 59, 999999), (2021, 1, 3, 5, 6, 7, 80000), (1700, 10, 15)],
    "tz": [(2020, 1, 31, 10), (1970, 1, 2), (1970, 1, 1), (2001, 3, 1, 12, 30, 15, 123456), None,
           (2024, 1, 31, 23, 59, 59), (2026, 1, 4), (1900, 3, 1, 1, 2, 3), (2025, 10, 26, 1, 30), (1969, 1, 1),
           (2021, 1, 3, 5, 6, 8), (1700, 2, 28)],
}
LISTS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "a": (pa.int32(), [None, [], [1], [3, 1, 2], [None], [1, None, 1], [5, 5, 5], [-1, 0, 1], [2147483640],
                       [7, 8, 9, 10], [None, None], [0]]),
    "h": (pa.int32(), [[1], [], None, [1, 2], [None], [1], [5], [0], [1], [9, 10, 11], [], [None, 0]]),
    "s": (pa.string(), [None, [], ["a"], ["b", "a", "ä"], [None], ["x", None, "x"], ["日本", "b"], [""],
                        ["a,b", "c"], ["c", "b", "a"], ["A", "a"], ["z"]]),
    "r": (pa.float64(), [None, [], [1.5], [NAN, 1.0], [None], [-0.0, 0.0], [INF, -INF], [2.0, 1.0], [0.1, 0.2], [1e308],
                         [NAN, NAN], [None, 3.0]]),
}
MAPS: list[Any] = [None, [], [("a", 1)], [("a", 1), ("b", 2)], [("a", None)], [("ü", 3)], [("x", 1), ("y", 2)],
                   [("a", 5)], [("b", 1)], [], [("k", 9)], [("a", 0)]]
BOOLEANS = {"b": [None, True, False, True, False], "c": [None, None, None, True, True, True, False]}
EDGES = len(MAPS)


def sample(seed: int = 0) -> pa.Table:
    """`id` and the columns above; numbers and times are drawn after the edge rows, everything else comes again."""
    draw = np.random.default_rng(seed)
    rows = EDGES + RANDOM_ROWS
    columns = {name: pa.array(islice(cycle(values), rows), pa.string()) for name, values in TEXTS.items()}
    drawn = _drawn(draw)
    for name, (kind, numbers) in NUMBERS.items():
        columns[name] = pa.array([*numbers, *drawn.get(name, islice(cycle(numbers), RANDOM_ROWS))], kind)
    for name, ((precision, scale), decimals) in DECIMALS.items():
        whole = draw.integers(-(10**8), 10**8, RANDOM_ROWS).tolist()
        values = [None if text is None else Decimal(text) for text in decimals]
        values += [Decimal(number).scaleb(-scale) for number in whole]
        columns[name] = pa.array(values, pa.decimal128(precision, scale))
    for name, times in TIMES.items():
        micros = draw.integers(-3 * 10**15, 6 * 10**15, RANDOM_ROWS)
        edges = [None if time is None else _utc(*time) for time in times]
        columns[name] = pa.array([*edges, *pa.array(micros, pa.timestamp("us", "UTC")).to_pylist()],
                                 pa.timestamp("us", "UTC"))
    columns["d"] = pa.array([None if time is None else date(time.year, time.month, time.day)
                             for time in columns["ts"].to_pylist()])
    for name, flags in BOOLEANS.items():
        columns[name] = pa.array(islice(cycle(flags), rows), pa.bool_())
    for name, (kind, lists) in LISTS.items():
        columns[name] = pa.array(islice(cycle(lists), rows), pa.list_(kind))
    columns["m"] = pa.array(islice(cycle(MAPS), rows), pa.map_(pa.string(), pa.int32()))
    structs = [None, *({"p": k if k % 3 else None, "q": f"s{k}"} for k in range(1, EDGES))]
    columns["o"] = pa.array(islice(cycle(structs), rows), pa.struct([("p", pa.int32()), ("q", pa.string())]))
    columns["by"] = pa.array(islice(cycle([None, b"", b"a", b"abc", "ü".encode(), b"1"]), rows), pa.binary())
    return pa.table({"id": pa.array(range(rows), pa.int32()), **columns})


def _utc(year: int, month: int, day: int, hour: int = 0, minute: int = 0, second: int = 0, micros: int = 0) -> datetime:
    return datetime(year, month, day, hour, minute, second, micros, UTC)


def _drawn(draw: np.random.Generator) -> dict[str, list[Any]]:
    normal, wide = draw.normal(0, 1, RANDOM_ROWS // 2), draw.lognormal(0, 5, RANDOM_ROWS // 2)
    return {
        "i": draw.integers(-(2**30), 2**30, RANDOM_ROWS).tolist(),
        "j": draw.integers(1, 1000, RANDOM_ROWS).tolist(),
        "l": draw.integers(-(2**62), 2**62, RANDOM_ROWS).tolist(),
        "k": draw.integers(-(2**33), 2**32, RANDOM_ROWS).tolist(),
        "x": [*normal, *wide],
        "y": [*wide, *-normal],
        "f": [*normal.astype(np.float32), *wide.astype(np.float32)],
    }
