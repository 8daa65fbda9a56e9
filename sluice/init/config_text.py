"""A guess -> a configuration with comments that say why, as text that contracts/config/config.py reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sluice.init.clicks import Clicks
from sluice.init.column_types import Column
from sluice.init.field_guess import GuessedField
from sluice.init.history_text import free_name, history_text
from sluice.init.plain_names import quoted
from sluice.init.role_guess import Guess
from sluice.init.side_tables import SideTable
from sluice.init.table_text import comment, derived, section, source, text_value
from sluice.table_samples.table_sample import TableSample

BINS = (10, 100)


def config_text(name: str, sample: TableSample, guess: Guess) -> str:
    """Paths are relative to `data`, the file's own folder."""
    parts = [_head(name, sample), _log(sample, guess), *map(_side_table, guess.tables), _label(guess), _windows(guess),
             *map(_field, guess.all_fields), _clock_fields(guess), history_text(guess), _left_out(guess)]
    return "\n".join(part.rstrip("\n") + "\n" for part in parts if part)


def _head(name: str, sample: TableSample) -> str:
    rows = f"{sample.rows} rows" if sample.format == "parquet" else f"about {sample.rows} rows"
    return (
        comment(f"Guessed from {sample.path.name} ({rows}, {len(sample.columns)} columns) by `sluice init`: read it "
                "before you trust it. `sluice features` also checks whether a field leaks the label.")
        + f"name = {text_value(name)}\ndata = {text_value(str(sample.path.absolute().parent))}\n"
    )


def _log(sample: TableSample, guess: Guess) -> str:
    numbers = [column for column in guess.columns if column.plain in guess.label.columns or column is guess.bid]
    lines = ["[log]", *source(sample, guess.columns, guess.fields, numbers, guess.position)]
    roles = {"user_id": guess.user, "item_id": guess.item, "event_time": guess.time, "position": guess.position,
             "bid": guess.bid}
    for role, column in roles.items():
        if role in guess.notes:
            lines.append(comment(f"{role}: {guess.notes[role]}").rstrip())
        if column is not None:
            lines.append(f"{role} = {text_value(_moment(guess) if role == 'event_time' else column.plain)}")
    return "\n".join([*lines, *section("log.derive", dict(_derived(guess, sample.dialect is None)))]) + "\n"


def _side_table(table: SideTable) -> str:
    """[users] or [items]."""
    name, sample, columns = f"{table.side}s", table.beside.sample, table.beside.columns
    used = [field.column for field in table.fields]
    read = [next((one for one in used if one.name == column.name), column) for column in columns]
    lines = [comment(table.why).rstrip(), f"[{name}]", *source(sample, read, table.fields),
             f"key = {text_value(table.key.plain)}"]
    own = derived(read, table.fields, frozenset({table.key.plain}), sample.dialect is None)
    reasons = [comment(f"Left out: {column}: {why}").rstrip() for column, why in table.left_out.items()]
    return "\n".join([*lines, *reasons, *section(f"{name}.derive", dict(own))]) + "\n"


def _moment(guess: Guess) -> str:
    return _free_moment(guess.columns, guess.time)


def _free_moment(columns: Sequence[Column], time: Column | None) -> str:
    """A name for the derived time that no column has."""
    names = {column.plain.lower() for column in columns if column is not time}
    return next(name for name in ("event_time", "event_moment", "event_time_derived") if name not in names)


def _derived(guess: Guess, parquet: bool) -> Iterator[tuple[str, str]]:
    used = guess.label.columns
    used |= {column.plain for column in (guess.user, guess.item, guess.position, guess.bid) if column is not None}
    if guess.time is not None:
        moment = _moment(guess)
        yield moment, guess.time.expression or quoted(guess.time.name)
        for name, function in _clock(guess):
            yield name, f"{function}({moment})"
    numbers = guess.label.columns | {column.plain for column in (guess.position, guess.bid) if column is not None}
    yield from derived(guess.columns, guess.fields, used, parquet, numbers)


def _label(guess: Guess) -> str:
    rate = "" if guess.label.rate is None else f"; {guess.label.rate:.1%} of the sampled rows are positive"
    if guess.label.clicks is not None:
        return comment(guess.notes["label"] + rate) + _clicks(guess.label.clicks)
    if guess.label.expression is None:
        repeat = str(guess.label.repeat).lower()
        return comment(guess.notes["label"]) + f"[label]\npositives_only = true\nrepeat = {repeat}\n"
    return comment(guess.notes["label"] + rate) + f"[label]\nexpression = {text_value(guess.label.expression)}\n"


def _clicks(clicks: Clicks) -> str:
    moment = _free_moment(clicks.columns, clicks.time)
    lines = ["[label.clicks]", *source(clicks.sample, clicks.columns, ()),
             f"on = [{', '.join(map(text_value, clicks.on))}]", f"event_time = {text_value(moment)}",
             f"window = {text_value(clicks.window)}"]
    made = {moment: clicks.time.expression or quoted(clicks.time.name)}
    made |= {column.plain: column.key for column in clicks.columns if column.name in clicks.on and column.pointed}
    return "\n".join([*lines, *section("label.clicks.derive", made)]) + "\n"


def _windows(guess: Guess) -> str:
    """None where the default ones fit: rates of counters take their prior from the statistics window, which else is
    idle; a log of positives alone has no rates."""
    if guess.time is not None and history_text(guess) and not guess.label.positives_alone:
        return ""
    if guess.time is not None:
        return (comment("No counter takes its prior from a statistics window: its share of the rows trains.")
                + "[windows]\nstatistics = 0.0\ntrain = 0.8\nvalidation = 0.1\ntest = 0.1\n")
    return (comment("Without times there is nothing to count in a statistics window.")
            + "[windows]\nstatistics = 0.0\ntrain = 0.7\nvalidation = 0.1\ntest = 0.2\n")


def _field(field: GuessedField) -> str:
    lines = [f"name = {text_value(field.name)}", f"kind = {text_value(field.kind)}", f"side = {text_value(field.side)}"]
    if field.key_type != "string" and not field.column.is_text:
        lines.append(f"key_type = {text_value(field.key_type)}")
    if field.kind == "multi_valued":
        lines.append(f"length = {field.length}")
        if field.column.separator is not None:
            lines.append(f"separator = {text_value(field.column.separator)}")
    if field.kind == "numeric":
        lines.append(f"granularities = {list(BINS)}")
    if field.log:
        lines.append("log = true")
    return comment(field.why) + "[[fields]]\n" + "\n".join(lines) + "\n"


def _clock_fields(guess: Guess) -> str:
    if guess.time is None or not _clock(guess):
        return ""
    return comment("From the time of the event, UTC.") + "\n".join(
        f'[[fields]]\nname = "{name}"\nkind = "categorical"\nside = "context"\nkey_type = "int64"\n'
        for name, _ in _clock(guess))


def _clock(guess: Guess) -> list[tuple[str, str]]:
    """(name, function) of what the time of the event tells."""
    assert guess.time is not None
    if not guess.with_clock:
        return []
    functions = ("weekday", "hour") if guess.time.clock else ("weekday",)
    return [(free_name(guess, f"event_{function}"), function) for function in functions]


def _left_out(guess: Guess) -> str:
    apart = "".join(comment(f"Not joined: {name}: {why}") for name, why in guess.not_joined.items())
    return apart + "".join(comment(f"Left out: {name}: {why}") for name, why in guess.left_out.items())
