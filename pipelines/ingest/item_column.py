"""One column of the items' table by the items' keys, of the rows that `sluice features` takes: for who reads it outside
a run."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

from pyspark.sql import functions as F

from contracts.artifacts import ITEM
from contracts.config.config import Config
from contracts.errors import ConfigError
from pipelines.engine.failures import explained
from pipelines.engine.session import session
from pipelines.engine.step import ANY, check_columns
from pipelines.ingest import quarantine
from pipelines.ingest.key_tables import marked_rows, one_of_each
from pipelines.reading import sources
from pipelines.reading.text_files import CORRUPT


def item_column(config: Config, data: str | Path | None, name: str) -> dict[str, Any]:
    """The values of the column `name`, raw or derived; malformed rows are left out.

    Raises ConfigError without a table of items, DataError where there is nothing to read, SchemaError without the
    column or the key's.
    """
    if config.items is None:
        raise ConfigError(f"{name!r} is a column of the items' table, and the configuration has none: add [items]")
    path = config.path(config.items, data)
    with session(config.spark, f"sluice items {config.name}") as spark, ExitStack() as held:
        raw = sources.read(spark, config.items, path, held, "items")
        columns = [column for column in raw.columns if column != CORRUPT]
        check_columns(raw.select(*[f"`{column}`" for column in columns]), {name: ANY}, f"items ({path})")
        with explained("items", path):
            clean = quarantine.clean(marked_rows(raw, config.items, ITEM, "items"))
            rows = one_of_each(clean, ITEM, columns).select(F.col(ITEM), F.col(f"`{name}`").alias("_value"))
            keys, values = rows.toArrow().columns
    return dict(zip(keys.to_pylist(), values.to_pylist(), strict=True))
