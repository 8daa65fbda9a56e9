"""Which keys a field knows: those of at least `min_count` training rows, ordered as contracts/features/vocabulary.py.

All fields are counted in one pass over the rows: batch by batch, then over all batches. The engine sorts what is
frequent, by ranges where it has several machines, into files beside the vocabularies; from them the driver writes each
vocabulary part by part (contracts/features/vocabulary_writer.py), so that none is in its memory.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from contracts.config.section import KeyType
from contracts.features import vocabulary
from contracts.features.arrow_columns import distinct_keys, first_entries
from contracts.features.vocabulary import Vocabulary
from contracts.features.vocabulary_writer import VocabularyWriter
from pipelines.encoding.sorted_files import in_order
from pipelines.engine.arrow_batches import larger
from pipelines.engine.worker_files import workers_write, write_parted

COUNTED = "_counted"
COUNTS = "field int, key string, number bigint, rows bigint"
ROWS = 262_144  # of a batch that is counted at once


class CountedField(NamedTuple):
    """A column whose keys are counted; one of lists by the distinct keys among the first `length` of each row."""

    name: str
    key_type: KeyType
    min_count: int
    length: int | None = None


def fit_vocabularies(train: DataFrame, fields: Sequence[CountedField], folder: Path) -> dict[str, Vocabulary]:
    """Writes those of the fields below `folder`, which all of the engine's machines have; returns them by name."""
    if not fields:
        return {}
    place = folder / COUNTED
    shutil.rmtree(place, ignore_errors=True)
    _write_counted(_frequent(train, fields), place)
    for number, field in enumerate(fields):
        files = sorted((place / f"field={number}").glob("*.parquet"))
        text = field.key_type == "string"
        with VocabularyWriter(folder, field.name, "string" if text else "int64") as writer:
            for part in in_order(files, "key" if text else "number"):
                writer.add(part)
    shutil.rmtree(place, ignore_errors=True)  # without rows, an engine may leave no folder
    return {field.name: vocabulary.read(folder, field.name) for field in fields}


def _write_counted(frequent: DataFrame, place: Path) -> None:
    """In ranges of one sort, which `in_order` needs of several machines alone."""
    if workers_write(frequent):
        write_parted(frequent, place, ["field"])
    else:
        frequent.orderBy("field", "number", "key").write.partitionBy("field").parquet(str(place))


def _frequent(train: DataFrame, fields: Sequence[CountedField]) -> DataFrame:
    """Columns field, and key or number, of the keys that come often enough."""
    counted = train.select(*[F.col(f"`{field.name}`") for field in fields]).mapInArrow(_counter(fields), COUNTS)
    rows = counted.groupBy("field", "key", "number").agg(F.sum("rows").alias("rows"))
    least = F.get(F.array(*[F.lit(field.min_count) for field in fields]), F.col("field"))
    return rows.where(F.col("rows") >= least).select("field", "key", "number")


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
    keys = known.keys.take(pa.array(seen))
    text = field.key_type == "string"
    columns = {
        "field": pa.array(np.full(len(seen), number), pa.int32()),
        "key": keys.cast(pa.string()) if text else pa.nulls(len(seen), pa.string()),
        "number": pa.nulls(len(seen), pa.int64()) if text else keys.cast(pa.int64()),
        "rows": pa.array(rows[seen], pa.int64()),
    }
    return pa.RecordBatch.from_pydict(columns)
