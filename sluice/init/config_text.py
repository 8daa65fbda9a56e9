"""A guess -> a configuration with comments that say why, as text that contracts/config/config.py reads."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from sluice.init.column_types import Column, missing_mark, quoted
from sluice.init.role_guess import Guess, GuessedField
from sluice.init.table_sample import TableSample

WIDTH = 116
BINS = (10, 100)


def config_text(name: str, sample: TableSample, guess: Guess) -> str:
    """Paths are relative to `data`, the file's own folder."""
    parts = [_head(name, sample), _log(sample, guess), _label(guess), _windows(guess), *map(_field, guess.fields),
             _histories(guess), _clock_fields(guess), _left_out(guess)]
    return "\n".join(part for part in parts if part)


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


def _comment(text: str) -> str:
    """As many lines of `# ...` as it takes; nothing in the text ends a comment."""
    lines, line = [], "#"
    for word in " ".join(text.split()).split(" "):
        if len(line) + len(word) + 1 > WIDTH and line != "#":
            lines.append(line)
            line = "#"
        line += f" {word}"
    return "\n".join([*lines, line]) + "\n"


def _table(values: Mapping[str, str]) -> str:
    inner = ", ".join(f"{key} = {_text(value)}" for key, value in values.items())
    return f"{{ {inner} }}"


def _head(name: str, sample: TableSample) -> str:
    rows = f"{sample.rows} rows" if sample.dialect is None else f"about {sample.rows} rows"
    return (
        _comment(f"Guessed from {sample.path.name} ({rows}, {len(sample.columns)} columns) by `sluice init`: read it "
                 "before you trust it. `sluice features` also checks whether a field leaks the label.")
        + f"name = {_text(name)}\ndata = {_text(str(sample.path.resolve().parent))}\n"
    )


def _log(sample: TableSample, guess: Guess) -> str:
    lines = ["[log]", f"path = {_text('{data}/' + sample.path.name)}"]
    if sample.dialect is None:
        lines.append('format = "parquet"')
    else:
        lines += ['format = "csv"', f"options = {_table(sample.dialect.options(missing_mark(sample)))}",
                  f"schema_ddl = {_text(_ddl(guess))}"]
    roles = {"user_id": guess.user, "item_id": guess.item, "event_time": guess.time, "position": guess.position}
    for role, column in roles.items():
        if role in guess.notes:
            lines.append(_comment(f"{role}: {guess.notes[role]}").rstrip())
        if column is not None:
            lines.append(f"{role} = {_text(_moment(guess) if role == 'event_time' else column.plain)}")
    derived = dict(_derived(guess, parquet=sample.dialect is None))
    if derived:
        lines += ["", "[log.derive]", *(f"{name} = {_text(read)}" for name, read in derived.items())]
    return "\n".join(lines) + "\n"


def _moment(guess: Guess) -> str:
    """A name for the derived time that no column has."""
    names = {column.plain.lower() for column in guess.columns if column is not guess.time}
    return next(name for name in ("event_time", "event_moment", "event_time_derived") if name not in names)


def _ddl(guess: Guess) -> str:
    """Numbers are read as DOUBLE where nothing else needs their text."""
    numbers = {field.column.plain for field in guess.fields if field.kind == "numeric"}
    labels = [column for column in guess.columns if column.plain in guess.label.columns]
    numbers |= {column.plain for column in labels if column.type in ("integer", "number")}
    whole = guess.position.plain if guess.position else None
    kinds = {
        column.plain: "DOUBLE" if column.plain in numbers and _as_it_is(column) else "STRING"
        for column in guess.columns
    }
    if whole:
        kinds[whole] = "INT"
    return ", ".join(f"{quoted(column.name)} {kinds[column.plain]}" for column in guess.columns)


def _as_it_is(column: Column) -> bool:
    return column.expression is None or column.expression == quoted(column.name)


def _derived(guess: Guess, parquet: bool) -> Iterator[tuple[str, str]]:
    used = {field.column.plain for field in guess.fields} | guess.label.columns
    used |= {column.plain for column in (guess.user, guess.item, guess.position) if column is not None}
    if guess.time is not None:
        moment = _moment(guess)
        yield moment, guess.time.expression or quoted(guess.time.name)
        yield "event_weekday", f"weekday({moment})"
        if _has_clock(guess.time):
            yield "event_hour", f"hour({moment})"
    numeric = {field.column.plain for field in guess.fields if field.kind == "numeric"}
    for column in guess.columns:
        if parquet and column.plain in numeric and column.is_text and _as_it_is(column):
            yield column.plain, f"try_cast({quoted(column.name)} AS DOUBLE)"
        elif column.expression is not None and column.type != "time" and column.plain in used:
            yield column.plain, column.expression


def _has_clock(time: Column) -> bool:
    read = time.expression or ""
    return any(word in read for word in ("HH", "H:mm", "seconds", "millis")) or any(":" in str(v) for v in time.known)


def _label(guess: Guess) -> str:
    rate = "" if guess.label.rate is None else f"; {guess.label.rate:.1%} of the sampled rows are positive"
    if guess.label.expression is None:
        repeat = str(guess.label.repeat).lower()
        return _comment(guess.notes["label"]) + f"[label]\npositives_only = true\nrepeat = {repeat}\n"
    return _comment(guess.notes["label"] + rate) + f"[label]\nexpression = {_text(guess.label.expression)}\n"


def _windows(guess: Guess) -> str:
    if guess.time is not None:
        return ""
    return (_comment("Without times there is nothing to count in a statistics window.")
            + "[windows]\nstatistics = 0.0\ntrain = 0.7\nvalidation = 0.1\ntest = 0.2\n")


def _field(field: GuessedField) -> str:
    lines = [f"name = {_text(field.column.plain)}", f"kind = {_text(field.kind)}", f"side = {_text(field.side)}"]
    if field.key_type != "string" and not field.column.is_text:
        lines.append(f"key_type = {_text(field.key_type)}")
    if field.kind == "multi_valued":
        lines.append(f"length = {field.length}")
        if field.column.separator is not None:
            lines.append(f"separator = {_text(field.column.separator)}")
    if field.kind == "numeric":
        lines.append(f"granularities = {list(BINS)}")
    if field.log:
        lines.append("log = true")
    return _comment(field.why) + "[[fields]]\n" + "\n".join(lines) + "\n"


def _histories(guess: Guess) -> str:
    """Of positives alone: what the user took last, and how often the item was taken."""
    if guess.label.expression is not None or guess.item is None:
        return ""
    item, names = guess.item.plain, {column.plain for column in guess.columns}
    last, taken = (next(name for name in (wanted, f"{wanted}_derived") if name not in names)
                   for wanted in ("last_taken", "times_taken"))
    return _comment("What the user took last, and how often the item was taken, both as of the last midnight.") + (
        f'[[fields]]\nname = "{last}"\nkind = "sequence"\nside = "user"\nof = {_text(item)}\nlength = 50\n'
        f'[[fields]]\nname = "{taken}"\nkind = "counter"\nside = "item"\nby = [{_text(item)}]\n'
        'windows = ["7d", "30d"]\nstatistics = ["count"]\n')


def _clock_fields(guess: Guess) -> str:
    if guess.time is None:
        return ""
    names = ["event_weekday", *(["event_hour"] if _has_clock(guess.time) else [])]
    return _comment("From the time of the event, UTC.") + "\n".join(
        f'[[fields]]\nname = "{name}"\nkind = "categorical"\nside = "context"\nkey_type = "int64"\n' for name in names)


def _left_out(guess: Guess) -> str:
    return "".join(_comment(f"Left out: {name}: {why}") for name, why in guess.left_out.items())
