"""Which items have a value of a field that histories list: a click on one that has none takes no place in the list, as
in `sluice features`.

    tables/listed_FIELD.npy    bool [I + 1]; the last one is of items that the bundle lacks

A field of which all have one is not written, as in bundles of before. An item that a table of items lacks has no value
of that table's columns; of a column of the log it has one, which the bundle does not know.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa

from contracts.artifacts import ITEM
from contracts.bundle.bundle import load_array, save_array
from contracts.config.config import Config
from contracts.errors import BundleError
from contracts.features.feature_spec import FeatureSpec

Listed = Mapping[str, np.ndarray]


def listed_fields(spec: FeatureSpec) -> list[str]:
    """Of the items, in no history twice."""
    return list(dict.fromkeys(field.of or "" for field in spec.of_side("user") if field.kind == "sequence"))


def write_listed(config: Config, source: Path, raw: pa.Table, spec: FeatureSpec, tables: Path) -> None:
    """`raw`: the fields' values of all items of the bundle, in its order; `source`: the table of items, as ingested."""
    import pyarrow.dataset as ds  # which brings pandas, a third of a second of each start of a server

    keys = {ITEM, config.log.item_id, config.items.key if config.items else None}
    of_table = set(ds.dataset(source, format="parquet").schema.names) - keys if config.items else set[str]()
    columns = {field.name: field.source_column for field in config.fields}
    for name in listed_fields(spec):
        has = np.append(raw.column(name).is_valid().to_numpy(), columns.get(name) not in of_table)
        if not has.all():
            save_array(tables / _file(name), has)


def load_listed(tables: Path, names: Iterable[str], items: int) -> Listed:
    """Raises BundleError where one does not fit the items."""
    found = {name: load_array(tables / _file(name)) for name in names if (tables / _file(name)).exists()}
    for name, has in found.items():
        if has.shape != (items + 1,):
            raise BundleError(f"the bundle's table {tables / _file(name)} has {len(has)} rows, its items need "
                              f"{items + 1}: assemble the bundle again")
    return found


def _file(name: str) -> str:
    return f"listed_{name}.npy"
