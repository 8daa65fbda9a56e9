"""`sluice init FILE`: looks at a table, guesses roles, kinds, label and time, shows why, writes a configuration."""

from __future__ import annotations

import os
import re
from pathlib import Path

from rich.console import Console
from rich.table import Table

from contracts.config.config import Config, parse
from contracts.errors import ConfigError, DataError
from contracts.summaries.summary import Record
from sluice.init.column_types import typed_columns
from sluice.init.config_text import config_text
from sluice.init.role_guess import Guess, guess
from sluice.init.side_tables import passed_over, tables_beside
from sluice.init.text_numbers import as_numbers
from sluice.table_samples.table_sample import TableSample, partitions, read_sample

FEWEST_ROWS, FEWEST_POSITIVES = 100, 10
PARTITION = "the folder's partitions, which its files do not hold; write it into them where it says more"


class WrittenConfig(Record):
    """What `sluice init` guessed: kinds by field, reasons by column left out, columns and tables by role."""

    config: str
    rows: int
    label: str
    fields: dict[str, str]
    left_out: dict[str, str]
    roles: dict[str, str | None]
    tables: dict[str, str]


def write_config(path: Path, target: Path | None, label: str | None, force: bool, console: Console) -> WrittenConfig:
    """Writes the configuration, `target` or NAME.toml here. Raises DataError in one sentence with what is missing."""
    path = Path(os.path.abspath(path))
    name = re.sub(r"[^A-Za-z0-9_-]+", "_", path.name.split(".")[0]).strip("_") or "table"
    target = target or Path(f"{name}.toml")
    if target.exists() and not force:
        raise ConfigError(f"{target} exists; give another file with --out, or overwrite it with --force")
    sample = read_sample(path, written=Path(os.path.abspath(target)))
    if sample.rows < FEWEST_ROWS:
        raise DataError(f"{path} has {sample.rows} rows; at least {FEWEST_ROWS} are needed to train, validate and test")
    guessed = guess(typed_columns(sample), label, tables_beside(path), sample.rows)
    guessed = guessed if sample.dialect else as_numbers(guessed)
    guessed.not_joined.update(passed_over(path))
    guessed.left_out.update(dict.fromkeys(partitions(path), PARTITION))
    _check(sample, guessed)
    text = config_text(name, sample, guessed)
    config = parse(text, str(target))
    target.write_text(text, encoding="utf-8")
    _show(guessed, config, console)
    console.print(f"wrote {target}; next: sluice run {target} --out out/{name}", highlight=False, markup=False)
    return WrittenConfig(
        config=str(target), rows=sample.rows, label=_label(config),
        fields={field.name: field.kind for field in config.fields}, left_out=guessed.left_out,
        roles={role: getattr(config.log, role) for role in ("user_id", "item_id", "event_time", "position", "bid")},
        tables={table.side: table.beside.sample.path.name for table in guessed.tables},
    )


def _check(sample: TableSample, guessed: Guess) -> None:
    """Raises DataError where there is too little to learn from, as far as the sample tells."""
    rate, rows = guessed.label.rate, len(next(iter(sample.columns.values())))
    if rate is not None and min(rate, 1 - rate) * rows < FEWEST_POSITIVES:
        raise DataError(
            f"{guessed.label.expression or 'the label'} holds for {rate:.2%} of {rows} sampled rows; at least "
            f"{FEWEST_POSITIVES} rows of each class are needed: bring more of the rarer one, or another label with "
            "--label"
        )


def _label(config: Config) -> str:
    if config.label.clicks is not None:
        return f"a row of {Path(config.label.clicks.path).name} within {config.label.clicks.window} s"
    return config.label.expression or "every row is a positive"


def _show(guessed: Guess, config: Config, console: Console) -> None:
    table = Table("column", "taken as", "because", title=f"label: {_label(config)}  ({guessed.label.why})")
    for role, column in (("time", guessed.time), ("position", guessed.position), ("bid", guessed.bid)):
        if column is not None:
            table.add_row(column.name, role, guessed.notes["event_time" if role == "time" else role])
    for field in guessed.all_fields:
        role = ", the user" if field.column is guessed.user else ", the item" if field.column is guessed.item else ""
        table.add_row(field.name, f"{field.kind}, {field.side}{role}", field.why)
    for name in sorted({field.name for field in config.fields} - {field.name for field in guessed.all_fields}):
        kind = next(field.kind for field in config.fields if field.name == name)
        table.add_row(name, kind, "see its comment in the file")
    for name, why in guessed.left_out.items():
        table.add_row(name, "left out", why)
    console.print(table, markup=False)
    for joined in guessed.tables:
        console.print(f"{joined.side}s: {joined.why}", highlight=False, markup=False)
    for name, why in guessed.not_joined.items():
        console.print(f"not joined: {name}: {why}", highlight=False, markup=False)
    if guessed.time is None:
        console.print(guessed.notes["event_time"], highlight=False, markup=False)
