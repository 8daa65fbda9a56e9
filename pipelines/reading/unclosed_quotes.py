"""A quote that is never closed: every line up to the next quote, or to the file's end, becomes part of one record.

Told by the lines within the record: most of them are whole rows by themselves. A long text is none of that.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable

from contracts.errors import DataError

FEWEST, SHARE = 10, 0.8  # lines within a record that are rows by themselves
CURE = ("remove the quote, or double it within a quoted value; where quotes are characters like any other, set "
        "options.quote to one that the file does not hold (such as \"\\u0001\")")

def swallowed_rows(text: str, fields: int, separator: str, quote: str = '"') -> int:
    """How many rows of so many fields the text of one record or value holds behind its first line; 0 where it is only a
    text of several lines."""
    lines = [line for line in text.splitlines()[1:] if line.strip()]
    if len(lines) < FEWEST or fields < 2:
        return 0
    rows = sum(_is_row(line, fields, separator, quote) for line in lines)
    return rows if rows >= SHARE * len(lines) else 0


def _is_row(line: str, fields: int, separator: str, quote: str) -> bool:
    """A comma of prose has a blank behind it; one that ends a line of JSON has nothing."""
    cells = next(csv.reader([line], delimiter=separator, quotechar=quote), [])
    return len(cells) == fields and sum(cell.strip() != "" for cell in cells) >= 2 and not cells[1].startswith(" ")


def too_long(where: str, most: str, lines: Iterable[str], separator: str, quote: str) -> DataError:
    """Of a file with a record longer than `most`; `lines` are the file's."""
    reader, begins = csv.reader(lines, delimiter=separator, quotechar=quote), 1
    try:
        for _ in reader:
            begins = reader.line_num + 1
    except csv.Error:  # a field of more than csv.field_size_limit()
        return DataError(f"{where}: line {begins} begins a record of more than {most}, as a quote does that is not "
                         f"closed there: {CURE}")
    return DataError(f"{where}: a record is longer than {most}: shorten it, or leave its column out of the file")


def unclosed(where: str, start: str, rows: int, lines: Iterable[str]) -> DataError:
    """`start`: the text, or the end, of the line in which the record begins; `lines`: the file's."""
    shown = start[:60].strip()
    number = next((number for number, line in enumerate(lines, 1) if line.rstrip("\r\n").endswith(start)), None)
    place = f"line {number}" if number is not None else "a line"
    return DataError(
        f"{where}: {place} ({shown!r}) opens a quote that is not closed there, and {rows} rows behind it would be read "
        f"as one value: {CURE}"
    )
