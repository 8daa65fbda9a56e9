"""`sluice init FILE`: looks at a table, guesses roles, kinds, label and time, shows why, writes a configuration."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from contracts.config.config import Config, parse
from contracts.errors import ConfigError, DataError
from sluice.init.column_types import typed_columns
from sluice.init.config_text import config_text
from sluice.init.role_guess import Guess, guess
from sluice.init.table_sample import TableSample, read_sample

FEWEST_ROWS, FEWEST_POSITIVES = 100, 10


def init(path: Path, target: Path | None, label: str | None, force: bool, console: Console) -> dict[str, Any]:
    """Writes the configuration, `target` or NAME.toml here. Raises DataError in one sentence with what is missing."""
    name = re.sub(r"[^A-Za-z0-9_-]+", "_", path.name.split(".")[0]).strip("_") or "table"
    target = target or Path(f"{name}.toml")
    if target.exists() and not force:
        raise ConfigError(f"{target} exists; give another file with --out, or overwrite it with --force")
    sample = read_sample(path)
    found = guess(typed_columns(sample), label)
    _check(sample, found)
    text = config_text(name, sample, found)
    config = parse(text, str(target))
    target.write_text(text, encoding="utf-8")
    _show(found, config, console)
    console.print(f"wrote {target}; next: sluice run {target} --out out/{name}", highlight=False, markup=False)
    return {"config": str(target), "rows": sample.rows, "label": config.label.expression,
            "fields": {one.name: one.kind for one in config.fields}, "left_out": found.left_out,
            "roles": {role: getattr(config.log, role) for role in ("user_id", "item_id", "event_time", "position")}}


def _check(sample: TableSample, found: Guess) -> None:
    """Raises DataError where there is too little to learn from, as far as the sample tells."""
    if sample.rows < FEWEST_ROWS:
        raise DataError(f"{sample.path} has {sample.rows} rows; at least {FEWEST_ROWS} are needed to train, validate "
                        "and test")
    rate, rows = found.label.rate, len(next(iter(sample.columns.values())))
    if rate is not None and min(rate, 1 - rate) * rows < FEWEST_POSITIVES:
        raise DataError(
            f"{found.label.expression} holds for {rate:.2%} of {rows} sampled rows; at least {FEWEST_POSITIVES} rows "
            "of each class are needed: bring more of the rarer one, or another label with --label"
        )


def _show(found: Guess, config: Config, console: Console) -> None:
    table = Table("column", "taken as", "because", title=f"label: {config.label.expression}  ({found.label.why})")
    for role, column in (("time", found.time), ("position", found.position)):
        if column is not None:
            table.add_row(column.name, role, found.notes["event_time" if role == "time" else role])
    for one in found.fields:
        role = ", the user" if one.column is found.user else ", the item" if one.column is found.item else ""
        table.add_row(one.column.name, f"{one.kind}, {one.side}{role}", one.why)
    for name, why in found.left_out.items():
        table.add_row(name, "left out", why)
    console.print(table, markup=False)
    if found.time is None:
        console.print(found.notes["event_time"], highlight=False, markup=False)
