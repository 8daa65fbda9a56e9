"""Files beside the log that hold a row per user or per item, found by their keys and offered joined; or its clicks.

A table fits a column of the log when one of its columns has every value once and knows nearly all of the log's; where
neither side has names, the two sets of values must also be nearly equal, for running numbers fit everything. Of the
log's own users and items, of which a sample shows some, it is enough that the values are no running numbers, or that
the file is named for such (movies.dat) and begins with them; and of those that the log names itself, a table whose key
is named alike may know a third: what it says of these is worth it.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from contracts.errors import DataError
from sluice.init.clicks import Clicks
from sluice.init.column_types import Column, typed_columns
from sluice.init.field_guess import GuessedField, Roles, fields_of, useless
from sluice.init.plain_names import quoted
from sluice.init.time_formats import UNNAMED
from sluice.table_samples.table_sample import NO_TABLES, WHOLE_BYTES, TableSample, read_sample

Side = Literal["user", "item"]
MOST_FILES, GLANCE = 30, 2000  # GLANCE: rows that tell whether a file is worth reading
KNOWS, EQUAL, FEWEST = 0.9, 0.8, 20
SOME = 1 / 3  # of the users or items of the log
SCATTERED = 4  # times as many whole numbers as keys between the least and the largest: a foreign number is hardly a key
NEARLY = 0.8  # of its rows have keys of their own: meant as a row per key, unlike a log
USERS = re.compile(r"user|customer|client|member|visitor|people|person|reader|profile|account|demographic", re.I)
ITEMS = re.compile(r"item|product|movie|film|song|track|artist|album|article|news|book|game|anime|video|recipe|hotel|"
                   r"listing|offer|restaurant|business|venue|course|job|podcast|(^|[ _])ads?($|[ _.])", re.I)
PERSONAL = re.compile(r"(^|[ _])(age|gender|sex|occupation|birth\w*)($|[ _])", re.I)
CLICKS = re.compile(r"click|purchase|conversion|order|booking|install", re.I)
FLAGS, MOST_FLAGS, SINGLE = 5, 20, 0.9
BY_HAND = "write it as [users] or [items], as docs/reference/configuration.md says"


@dataclass(frozen=True)
class Beside:
    """A table in the log's folder."""

    sample: TableSample
    columns: list[Column]

    @property
    def stem(self) -> str:
        return self.sample.path.name


@dataclass(frozen=True)
class SideTable:
    """A table joined to the log: its `key` refers to the log's `column`."""

    side: Side
    beside: Beside
    key: Column
    column: Column
    fields: list[GuessedField]
    left_out: dict[str, str]
    why: str


def tables_beside(path: Path) -> list[Beside]:
    """Tables in the folder of the log `path` that may be joined to it, without the log; what cannot be read is none."""
    found = []
    for other in _files_beside(path)[:MOST_FILES]:
        try:
            sample = _joinable(other)
        except DataError:
            continue
        if sample is not None:
            found.append(Beside(sample, typed_columns(sample)))
    return found


def passed_over(path: Path) -> dict[str, str]:
    """What else lies beside the log and is not looked at -> why."""
    large = {other.name: f"{other.stat().st_size >> 20} MiB; files beside the log are looked at up to "
                         f"{WHOLE_BYTES >> 20} MiB. Where it has a row per user or item, {BY_HAND}"
             for other in _tables(path) if other.stat().st_size > WHOLE_BYTES}
    rest = _files_beside(path)[MOST_FILES:]
    if not rest:
        return large
    named = rest[0].name if len(rest) == 1 else f"{rest[0].name} to {rest[-1].name}"
    return {**large, named: f"{len(rest)} of {MOST_FILES + len(rest)} files beside the log, of which the first "
                            f"{MOST_FILES} by name are looked at; where a table of users or items is among them, put "
                            f"it and the log into a folder of their own, or {BY_HAND}"}


def _files_beside(path: Path) -> list[Path]:
    return [other for other in _tables(path) if other.stat().st_size <= WHOLE_BYTES]


def _tables(path: Path) -> list[Path]:
    return [other for other in sorted(path.absolute().parent.iterdir())
            if other.is_file() and not other.samefile(path) and not other.name.startswith(".")
            and Path(other.name.lower().removesuffix(".gz")).suffix not in (*NO_TABLES, ".json", ".jsonl", ".log")
            and other.stat().st_size > 0]


def _joinable(path: Path) -> TableSample | None:
    """All of a table that is named like clicks, or has a column of keys that hardly repeat. Another log has none: what
    some of its rows tell spares reading it, what all tell spares typing it, which in Python takes longer still."""
    if CLICKS.search(path.name):
        return read_sample(path, whole=True)
    keys = _keys(read_sample(path))
    sample = read_sample(path, whole=True) if keys else None
    return sample if sample is not None and any(_hardly_repeats(sample.columns[key]) for key in keys) else None


def _keys(sample: TableSample) -> list[str]:
    """Columns, or what holds them, whose values hardly repeat in some of the rows."""
    step = -(-len(next(iter(sample.columns.values()))) // GLANCE)
    some = dataclasses.replace(sample, columns={name: cells[::step] for name, cells in sample.columns.items()})
    return [column.inside or column.name for column in typed_columns(some)
            if column.type in ("integer", "text") and _hardly_repeats(column.values)]


def _hardly_repeats(cells: Sequence[Any]) -> bool:
    return len(set(cells) - {None}) >= NEARLY * len(cells)


def clicks_beside(log: Sequence[Column], time: Column, tables: Sequence[Beside]) -> Clicks | None:
    """The table that is named like clicks, tells when they were, and names the impressions, nearly each by itself, of
    some of the log's rows."""
    for table in tables:
        times = [one for one in table.columns if one.type == "time" and len(one.known) == len(one.values)]
        keys = {column.name for column in table.columns if column.type in ("integer", "text")}
        on = [column for column in log if column.name in keys and column.type in ("integer", "text")]
        several = len(set(zip(*(column.values for column in on), strict=True)))
        if CLICKS.search(table.stem) and times and on and several >= SINGLE * len(on[0].values):
            found = Clicks(table.sample, table.columns, tuple(column.name for column in on), times[0])
            if len(set(found.truth(log))) == 2:
                return dataclasses.replace(found, window="1h" if found.within_an_hour(log, time) else "1d")
    return None


def matching(
    log: Sequence[Column], tables: Sequence[Beside], user: Column | None, item: Column | None
) -> Iterator[tuple[Column, Beside, Column, str]]:
    """(column of the log, table, its key, why) of everything that fits, the closest fit of a column first; `user` and
    `item` are the log's own."""
    for column in log:
        if column.type not in ("integer", "text") or len(column.distinct) < FEWEST:
            continue
        side: Side | None = "user" if column is user else "item" if column is item else None
        fits = [fit for table in tables for fit in _fits(column, table, side)]
        for _, knows, table, key in sorted(fits, key=lambda fit: -fit[0]):
            rest = "" if knows >= KNOWS else ", and says nothing of the others"
            yield column, table, key, (f"{table.stem} has a row for each of {len(key.distinct)} values of {key.name}; "
                                       f"it knows {knows:.0%} of the log's {column.name}{rest}")


def _fits(column: Column, table: Beside, side: Side | None) -> Iterator[tuple[float, float, Beside, Column]]:
    """(share of both that is shared, share of the log's that is known, table, key); `side`: whose ids the column is."""
    values = {str(value) for value in column.known}
    least = KNOWS if side is None else SOME
    for key in table.columns:
        if not _are_keys(key, column) or len(key.known) < len(key.values) or len(key.distinct) < len(key.values):
            continue
        keys = {str(value) for value in key.values}
        both = len(values & keys)
        knows, overlap = both / len(values), both / len(values | keys)
        meant = side is not None and (_scattered(keys) or (key is table.columns[0] and _named_for(side, table)))
        if (knows >= least and _same_name(column, key, table)) or (knows >= KNOWS and (overlap >= EQUAL or meant)):
            yield overlap, knows, table, key


def _scattered(keys: set[str]) -> bool:
    """Whether they are no running numbers, which know any other ids of few digits."""
    if not all(key.isdecimal() for key in keys):
        return True
    numbers = [int(key) for key in keys]
    return max(numbers) - min(numbers) >= SCATTERED * len(numbers)


def _named_for(side: Side, table: Beside) -> bool:
    return speaks_of_users(table) if side == "user" else bool(ITEMS.search(table.stem)) and not speaks_of_users(table)


def not_joined(roles: dict[Side, Column | None], tables: Sequence[Beside]) -> Iterator[tuple[str, str]]:
    """(file, why it is not joined) of tables that would fit a role by the name of a column, but for keys that repeat or
    are missing in few rows, or that are of few of the log's."""
    for side, column in roles.items():
        for table in tables if column is not None else ():
            key = next((key for key in table.columns if column is not None and _are_keys(key, column)
                        and _same_name(column, key, table)), None)
            if key is None or column is None or len(key.distinct) < NEARLY * len(key.values):
                continue
            known = len({str(value) for value in column.known} & {str(value) for value in key.known})
            if known < SOME * len(column.distinct):
                yield table.stem, (
                    f"it knows {known / len(column.distinct):.0%} of the log's {column.name} by its {key.name}; where "
                    f"both are meant to be the same, are they written alike? To join it all the same, {BY_HAND}")
            elif len(key.distinct) < len(key.values):
                yield table.stem, (
                    f"{len(key.distinct)} different {key.name} in {len(key.values)} rows, and a table of {side}s has a "
                    f"row for each; write it with one, such as the newest, and join it as [{side}s] (a run of a table "
                    f"with repeated keys keeps one row of each by its content's hash, not the newest)")


def _are_keys(one: Column, other: Column) -> bool:
    """Whether they can be compared, as texts: a user's number is a text where some rows are without."""
    return one.type in ("integer", "text") and other.type in ("integer", "text")


def _same_name(column: Column, key: Column, table: Beside) -> bool:
    """user_id = user_id, or id of users.csv; names that Sluice gave are none."""
    if UNNAMED.match(key.plain) or UNNAMED.match(column.plain):
        return False
    words = re.sub(r"_?(id|key|no)$", "", column.plain.lower())
    own = re.sub(r"_?(id|key|no)$", "", key.plain.lower())
    return column.plain.lower() == key.plain.lower() or (own == "" and words.rstrip("s") in table.stem.lower())


def speaks_of_users(table: Beside) -> bool:
    names = " ".join(column.plain for column in table.columns)
    return bool(USERS.search(table.stem) or PERSONAL.search(names))


def side_table(
    side: Side, beside: Beside, key: Column, column: Column, why: str, roles: Roles, taken: set[str]
) -> SideTable:
    """The table's columns as fields of its side; `taken` are names of the log, which its columns must not have."""
    left_out: dict[str, str] = {}
    fields: list[GuessedField] = []
    place = {str(value): row for row, value in enumerate(key.values)}
    rows = [place.get(str(value)) for value in column.values]
    others = [_renamed(one, side, taken) for one in beside.columns if one is not key]
    flags = [one for one in others if one.type == "integer" and set(one.distinct) <= {0, 1}]
    if len(flags) >= FLAGS:
        fields.append(_flag_list(flags, side))
        others = [one for one in others if one not in flags]
    for one in others:
        if one.type == "time" and one.moment is not None and len(one.distinct) > 1:
            fields.append(_year(one, side))
            continue
        reason = useless(one)
        if reason:
            left_out[one.name] = reason
            continue
        looked_up = dataclasses.replace(one, values=[None if row is None else one.values[row] for row in rows])
        for field in fields_of(looked_up, Roles(None, None, roles.truth), left_out, side):
            if field.kind == "categorical" and len(one.distinct) >= SINGLE * len(one.values):
                left_out[one.name] = f"nearly every {side} has one of its own: another name of {key.name}, which is one"
            else:
                fields.append(dataclasses.replace(field, column=one))
    return SideTable(side, beside, key, column, fields, left_out, why)


def _renamed(column: Column, side: Side, taken: set[str]) -> Column:
    if column.plain.lower() not in taken and not UNNAMED.match(column.plain):
        return column
    read = column.expression or quoted(column.name)
    return dataclasses.replace(column, plain=f"{side}_{column.plain}", expression=read)


def _flag_list(flags: Sequence[Column], side: Side) -> GuessedField:
    """Columns of 0 and 1 as one list of what holds."""
    rows: list[tuple[Any, ...]] = list(zip(*(flag.values for flag in flags), strict=True))
    longest = max(sum(value == 1 for value in row) for row in rows)
    each = ", ".join(f"if({flag.expression or quoted(flag.name)} = 1, '{flag.plain}', null)" for flag in flags)
    return GuessedField(flags[0], f"{side}_flags", "multi_valued", side, length=max(1, min(longest, MOST_FLAGS)),
                        derive=f"array_compact(array({each}))",
                        why=f"{len(flags)} columns of 0 and 1, as one list of those that hold")


def _year(column: Column, side: Side) -> GuessedField:
    return GuessedField(column, f"{column.plain}_year", "numeric", side, why=f"the year of {column.why}",
                        derive=f"CAST(year({column.expression or quoted(column.name)}) AS DOUBLE)")
