"""Which keys a field knows: those of at least `min_count` training rows, ordered as contracts/features/vocabulary.py.

All fields are counted in one pass over the rows: batch by batch, then over all batches. A vocabulary is the one thing
of its size that comes to the driver.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from contracts.config.section import KeyType
from contracts.features.arrow_columns import distinct_keys, first_entries
from contracts.features.vocabulary import Vocabulary
from pipelines.engine.arrow_batches import larger

COUNTS = "field int, key string, rows bigint"
ROWS = 262_144  # of a batch that is counted at once


class CountedField(NamedTuple):
    """A column whose keys are counted; one of lists by the distinct keys among the first `length` of each row."""

    name: str
    key_type: KeyType
    min_count: int
    length: int | None = None


def fit_vocabularies(train: DataFrame, fields: Sequence[CountedField]) -> dict[str, Vocabulary]:
    """By name."""
    if not fields:
        return {}
    found = _frequent(train, fields)
    numbers, keys = found.column("field").to_numpy(), found.column("key")
    chosen = {field.name: keys.filter(pa.array(numbers == n)) for n, field in enumerate(fields)}
    return {field.name: _vocabulary(chosen[field.name], field) for field in fields}


def _frequent(train: DataFrame, fields: Sequence[CountedField]) -> pa.Table:
    """Columns field and key of the keys that come often enough."""
    counted = train.select(*[F.col(f"`{field.name}`") for field in fields]).mapInArrow(_counter(fields), COUNTS)
    rows = counted.groupBy("field", "key").agg(F.sum("rows").alias("rows"))
    least = F.get(F.array(*[F.lit(field.min_count) for field in fields]), F.col("field"))
    return rows.where(F.col("rows") >= least).select("field", "key").toArrow()


def _counter(fields: Sequence[CountedField]) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    wanted = tuple(fields)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in larger(batches, ROWS):
            for number, field in enumerate(wanted):
                yield _counts(number, field, batch.column(number))

    return run


def _counts(number: int, field: CountedField, values: pa.Array) -> pa.RecordBatch:
    """Rows of the batch by key; nulls are no key."""
    if field.length is None:
        known = distinct_keys(values, field.key_type)
        places = known.places[known.places >= 0]
    else:
        entries = first_entries(values, field.length)
        known = distinct_keys(entries.entries, field.key_type)
        present = known.places >= 0
        width = max(len(known.keys), 1)
        places = np.unique(entries.rows[present] * width + known.places[present]) % width
    rows = np.bincount(places, minlength=len(known.keys))
    seen = np.flatnonzero(rows)
    keys = known.keys.take(pa.array(seen)).cast(pa.string())
    return pa.RecordBatch.from_arrays(
        [pa.array(np.full(len(seen), number), pa.int32()), keys, pa.array(rows[seen], pa.int64())],
        names=["field", "key", "rows"],
    )


def _vocabulary(keys: pa.ChunkedArray, field: CountedField) -> Vocabulary:
    text = field.key_type == "string"
    return Vocabulary.of(keys if text else keys.cast(pa.int64()), "string" if text else "int64")
