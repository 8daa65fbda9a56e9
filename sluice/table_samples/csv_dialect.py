"""How a text table is written: encoding, separator, header, quotes. Guessed from its first lines."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from io import StringIO
from itertools import islice
from pathlib import Path

from contracts.errors import DataError
from pipelines.reading.unclosed_quotes import swallowed_rows, unclosed

SEPARATORS = (",", ";", "\t", "|", "::", "\x01", "^", "~", " ")
NUMBER = re.compile(r"[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?$")
DECIMAL_COMMA = re.compile(r"[+-]?[\d. ]*,\d+ ?[€%]?$")
MISSING = ("", "?", "NA", "N/A", "NULL", "null", "None", "nan", "NaN", "\\N", "-")
SNIFFED, ALIKE = 400, 0.99  # lines; of them are cut into as many cells
UTF_8 = "utf-8-sig"
ESCAPE = re.compile(r'\\(["\\])')


@dataclass(frozen=True)
class Dialect:
    """`names` are the header's, or c0, c1, ... where there is none (or a name is empty or given twice)."""

    encoding: str
    separator: str
    header: bool
    names: tuple[str, ...]
    renamed: bool
    padded: bool
    doubled_quotes: bool
    several_lines: bool

    def rows(self, piece: bytes, first: bool) -> list[list[str]]:
        """The rows of a piece of the file, without the header in its first piece; blank lines are none."""
        rows = _split(piece.decode(self.encoding, errors="replace"), self.separator, not self.doubled_quotes)
        return rows[1:] if first and self.header else rows

    def first_names(self, piece: bytes) -> list[str]:
        """Of a file's columns: its header in lower case, or c0, c1, ... where there is none."""
        text = piece.decode(self.encoding, errors="replace")
        first = next(iter(_split(text, self.separator, not self.doubled_quotes)), [])
        return [cell.strip().lower() if self.header else f"c{place}" for place, cell in enumerate(first)]

    def options(self, missing: str | None) -> dict[str, str]:
        """What Spark's reader must be told."""
        options = {"sep": self.separator}
        if self.header:
            options["header"] = "true"
        if self.renamed and self.header:
            options["enforceSchema"] = "true"
        if self.encoding.startswith("ISO"):
            options["encoding"] = self.encoding
        if self.padded:
            options |= {"ignoreLeadingWhiteSpace": "true", "ignoreTrailingWhiteSpace": "true"}
        if self.doubled_quotes:
            options["escape"] = '"'
        if self.several_lines:
            options["multiLine"] = "true"
        if missing:
            options["nullValue"] = missing
        return options


def sniff(piece: bytes, path: Path, others: Sequence[bytes] = ()) -> Dialect:
    """`others`: further pieces of the file, for its encoding and its quotes.

    Raises DataError when no separator cuts the lines into equally many columns, or a quote is not closed."""
    encoding = next((found for one in (piece, *others) if (found := _encoding(one)) != UTF_8), UTF_8)
    text = piece.decode(encoding, errors="replace")
    separator, escaped, rows = _reading(text, path)
    _check_first(rows, path)
    _check_closed(rows, text, separator, path)
    header = _is_header(rows[0], rows[1 : SNIFFED + 1])
    names = [cell.strip() for cell in rows[0]] if header else [""] * len(rows[0])
    unique = _named(names)
    cells = [cell for row in rows[1:SNIFFED] for cell in row if cell.strip()]
    blanks = sum(cell != cell.strip() for cell in cells) > 0.3 * len(cells)
    padded = separator != " " and (blanks or text.count(f"{separator} ") > 0.3 * text.count(separator))
    several_lines = any("\n" in cell for row in rows for cell in row)
    texts = (text, *(other.decode(encoding, errors="replace") for other in others if other is not piece))
    doubled = not escaped and (any(_doubles_quotes(one, separator) for one in texts)
                               or _ends_in_backslash(rows, text, separator)
                               or (several_lines and '\\"' not in text))  # RFC 4180, as what writes such cells does
    return Dialect(encoding, separator, header, tuple(unique), unique != names, padded, doubled, several_lines)


def _reading(text: str, path: Path) -> tuple[str, bool, list[list[str]]]:
    """The separator, whether quotes have a backslash before them, and the rows: of those readings by which most rows
    are alike. Raises DataError where there is none."""
    readings = []
    for escaped in (False, True) if '\\"' in text else (False,):
        separator = _separator(text, escaped)
        if separator:
            rows = _split(text, separator, escaped)
            alike = Counter(map(len, rows)).most_common(1)[0][1] / len(rows)
            within = escaped and re.search(rf'\\"(?!"| *({re.escape(separator)}|[\r\n]|\Z))', text) is not None
            readings.append((alike, within, separator, escaped, rows))
    if not readings:
        raise DataError(
            f"{path} has one column, or none of the separators {' '.join(map(repr, SEPARATORS))} cuts its lines into "
            "equally many columns; a table needs a label and at least one field"
        )
    return max(readings, key=lambda reading: reading[:2])[2:]


def _doubles_quotes(text: str, separator: str) -> bool:
    """Whether quotes are, within a cell; two alone are an empty one."""
    by = re.escape(separator)
    return '""' in re.sub(rf'(?:^|(?<={by})|(?<=\n)) *"" *(?={by}|[\r\n]|\Z)', "", text)


def _ends_in_backslash(rows: Sequence[list[str]], text: str, separator: str) -> bool:
    """Whether a cell in quotes does, which Spark takes for an escaped quote unless it is told of doubled ones."""
    found = re.search(rf'\\"({re.escape(separator)}|\r?\n)', text)
    return found is not None and Counter(map(len, rows)).most_common(1)[0][1] >= ALIKE * len(rows)


def _check_first(rows: Sequence[list[str]], path: Path) -> None:
    """Raises DataError where a title, or a mark such as sep=; of Excel, stands above the table."""
    width = Counter(map(len, rows[:SNIFFED])).most_common(1)[0][0]
    first, said = rows[0], [cell.strip() for cell in rows[0] if cell.strip()]
    title = width > 2 and len(said) == 1 and not NUMBER.match(said[0])
    if len(first) != width or title:
        raise DataError(f"{path}: its first line, {said[0][:60]!r}, is no line of a table of {width} columns: remove "
                        f"it, or write {width} names there")


def _check_closed(rows: Sequence[list[str]], text: str, separator: str, path: Path) -> None:
    """Raises DataError where a quote makes one value of many rows, so that the sample and the readers lose them."""
    width = Counter(map(len, rows[:SNIFFED])).most_common(1)[0][0]
    for cell in (cell for row in rows for cell in row if "\n" in cell):
        swallowed = swallowed_rows(cell, width, separator)
        if swallowed:
            raise unclosed(str(path), f'"{cell.splitlines()[0]}', swallowed, StringIO(text, newline=""))


def _encoding(piece: bytes) -> str:
    try:
        piece[: piece.rfind(b"\n") + 1 or None].decode("utf-8")
    except UnicodeDecodeError:
        return "ISO-8859-1"
    return UTF_8


def _split(text: str, separator: str, escaped: bool) -> list[list[str]]:
    """Cells of every line that is not blank. Quotes are read as Spark reads them, those with a backslash before them
    where that is how they are `escaped`; a long separator knows none."""
    if len(separator) > 1:
        return [line.split(separator) for line in re.split("\r\n|\r|\n", text) if line.strip()]
    spaced = separator not in (" ", "\t")
    text = _unescaped(text, separator) if escaped and "\\" in text else text
    return [row for row in csv.reader(StringIO(text, newline=""), delimiter=separator, skipinitialspace=spaced)
            if any(cell.strip() for cell in row)]


def _unescaped(text: str, separator: str) -> str:
    """The same with doubled quotes. A backslash is an escape inside quotes alone, before a quote or another."""
    by = re.escape(separator)
    cell = rf'((?:^|[\r\n]|{by}) *")((?:[^"\\]|\\.)*+)(?=" *(?:{by}|[\r\n]|\Z))'
    return re.sub(cell, lambda found: found[1] + ESCAPE.sub(_as_doubled, found[2]), text, flags=re.DOTALL)


def _as_doubled(found: re.Match[str]) -> str:
    return '""' if found[1] == '"' else found[1]


def _separator(text: str, escaped: bool) -> str:
    """The one that cuts nearly all lines, the first among them, into equally many columns, and into most; one that
    leaves the first line out where none does, and blanks where nothing else cuts; "" where nothing does.

    A semicolon comes before a comma that is decimal wherever it stands within its cells, and before one that cuts into
    no more columns."""
    start = "".join(islice(StringIO(text, newline=""), SNIFFED))
    cuts = {separator: rows for separator in SEPARATORS
            if (rows := _split(start, separator, escaped)) and _width(rows) > 1}
    widths = {separator: _width(rows) for separator, rows in cuts.items()}
    best = max(cuts, key=lambda one: (one != " ", len(cuts[one][0]) == widths[one], widths[one]), default="")
    return ";" if best == "," and ";" in cuts and _parts(cuts[";"], widths[","]) else best


def _width(rows: Sequence[list[str]]) -> int:
    """Columns of nearly all rows, 0 where they differ."""
    width, agreeing = Counter(map(len, rows)).most_common(1)[0]
    return width if agreeing >= 0.9 * len(rows) else 0


def _parts(rows: Sequence[list[str]], by_comma: int) -> bool:
    """Whether semicolons, which make these rows, part the columns, and commas, which make so many, do not."""
    if any(len(row) != len(rows[0]) for row in rows):
        return False
    with_comma = [cell.strip() for row in rows for cell in row if "," in cell]
    return len(rows[0]) >= by_comma or all(map(DECIMAL_COMMA.match, with_comma))


def _is_header(first: list[str], rest: Sequence[list[str]]) -> bool:
    """Names, not values: no numbers and nothing missing, different from what stands below, if anything does."""
    names = [cell.strip() for cell in first]
    if any(NUMBER.match(name) for name in names) or len(set(names)) < 0.5 * len(names):
        return False
    if not rest:
        return all(re.match(r"[^\W\d]", name) for name in names)
    below = [{row[place].strip() for row in rest if place < len(row)} for place in range(len(names))]
    if not any(below):
        return False
    known = [values - set(MISSING) for values in below]
    numbers = sum(bool(values) and all(NUMBER.match(value) for value in values) for values in known)
    recurring = sum(name != "" and name in values for name, values in zip(names, below, strict=True))
    return recurring == 0 and (numbers > 0 or all(re.match(r"\w[\w .()/-]*$", name) for name in names))


def _named(names: list[str]) -> list[str]:
    """Empty and repeated names, in whatever case, become the place of the column."""
    lower = [name.lower() for name in names]
    return [name if name and lower.index(name.lower()) == place else f"c{place}" for place, name in enumerate(names)]
