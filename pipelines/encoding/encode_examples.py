"""Raw features -> ids, batch by batch, by the very functions of contracts/features/encoding.py that serve a request."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from contracts.artifacts import DRAWS, FRESH, ID_PREFIX, LABEL, POSITION, ROW, TIME, USER
from contracts.config.section import Side
from contracts.features.encoding import Encoder
from contracts.features.feature_spec import FeatureSpec
from contracts.features.vocabulary import Vocabulary
from pipelines.engine.arrow_batches import larger

SIDES: tuple[Side, ...] = ("user", "context", "item", "cross")
LISTED = ("multi_valued", "sequence")
ROWS = 65_536  # of a batch that is encoded at once


class Mapped(NamedTuple):
    """What `run` makes of the batches of `rows`: batches of `schema`, of which `names` are wanted, in this order."""

    rows: DataFrame
    run: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
    schema: T.StructType
    names: tuple[str, ...]

    def frame(self) -> DataFrame:
        return self.rows.mapInArrow(self.run, self.schema).select(*self.names)


def encode(
    df: DataFrame, spec: FeatureSpec, vocabularies: Mapping[str, Vocabulary], keep: Sequence[str] = (),
) -> Mapped:
    """Per row the columns

        `keep`, then _label float, _position int, _user bigint (a hash, to group by), _row, _time, _draws, where `df`
                      has them
        SLOT          per id slot: int, or array<int> of the field's length
        NAME          per dense slot: the raw value as double
        SLOT@fresh, NAME@fresh        where any raw column has an event-fresh twin
    """
    twins, reserved = twin_fields(df, spec), _reserved(df)
    raw = [name + suffix for suffix in ("", FRESH) for name in _raw(spec) if name + suffix in df.columns]
    dense = _dense(spec, frozenset()) + (_dense(spec, twins) if twins else [])
    columns = {name: F.col(f"`{name}`") for name in (*keep, *raw)}
    columns |= {name: columns[name].cast("double") for name in dense} | reserved
    selected = df.select(*[column.alias(name) for name, column in columns.items()])
    ids = _outputs(spec, "", frozenset()) + (_outputs(spec, "", twins) if twins else [])
    mapped = _mapped(selected, [*keep, *reserved, *dense], ids, spec, vocabularies)
    return mapped._replace(names=(*keep, *reserved, *_slots(spec, twins)))


def with_ids(df: DataFrame, spec: FeatureSpec, vocabularies: Mapping[str, Vocabulary]) -> DataFrame:
    """Adds a column `id:SLOT` per id slot."""
    return _mapped(df, df.columns, _outputs(spec, ID_PREFIX, frozenset()), spec, vocabularies).frame()


class _Output(NamedTuple):
    """A column of ids: of `slot`, from the raw columns' twins where it is of one of `twins`."""

    name: str
    slot: str
    listed: bool
    fresh: bool


def _outputs(spec: FeatureSpec, prefix: str, twins: frozenset[str]) -> list[_Output]:
    """Of all fields, or of the twins alone."""
    suffix = FRESH if twins else ""
    return [
        _Output(prefix + slot.name + suffix, slot.name, spec.by_name[slot.field].kind in LISTED, bool(twins))
        for slot in spec.id_slots(*SIDES) if not twins or slot.field in twins
    ]


def _dense(spec: FeatureSpec, twins: frozenset[str]) -> list[str]:
    suffix = FRESH if twins else ""
    return [slot.name + suffix for slot in spec.dense_slots(*SIDES) if not twins or slot.field in twins]


def _slots(spec: FeatureSpec, twins: frozenset[str]) -> list[str]:
    """Output columns in their order: ids and numbers of all fields, then of the twins."""
    parts = [frozenset[str]()] + ([twins] if twins else [])
    return [name for part in parts for name in (*(o.name for o in _outputs(spec, "", part)), *_dense(spec, part))]


def _mapped(
    df: DataFrame, passed: Sequence[str], outputs: Sequence[_Output], spec: FeatureSpec,
    vocabularies: Mapping[str, Vocabulary],
) -> Mapped:
    """The columns `passed` and the ids of `outputs`."""
    twins = {output.slot for output in outputs if output.fresh}
    ids = [T.StructField(o.name, T.ArrayType(T.IntegerType()) if o.listed else T.IntegerType()) for o in outputs]
    names = [*passed, *(output.name for output in outputs)]

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        encoder = Encoder(spec, vocabularies)
        for batch in larger(batches, ROWS):
            columns = dict(zip(batch.schema.names, batch.columns, strict=True))
            found = {False: encoder.slot_ids(columns)}
            if twins:
                fresh = columns | {n.removesuffix(FRESH): c for n, c in columns.items() if n.endswith(FRESH)}
                found[True] = encoder.slot_ids(fresh)
            made = [_column(found[output.fresh][output.slot], output.listed) for output in outputs]
            yield pa.RecordBatch.from_arrays([*(columns[name] for name in passed), *made], names=names)

    return Mapped(df, run, T.StructType([*(df.schema[name] for name in passed), *ids]), tuple(names))


def _column(ids: np.ndarray, listed: bool) -> pa.Array:
    if not listed:
        return pa.array(ids[:, 0], pa.int32())
    offsets = np.arange(0, ids.size + 1, ids.shape[1], dtype=np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(ids.reshape(-1), pa.int32()))


def cross_codes(
    df: DataFrame, spec: FeatureSpec, crosses: Mapping[str, Sequence[str]], vocabularies: Mapping[str, Vocabulary],
) -> DataFrame:
    """A bigint per cross: the mixed-radix code of the ids of its parts."""
    slots = {part: spec.slot(part) for parts in crosses.values() for part in parts}
    fields = sorted({slot.field for slot in slots.values()})
    known = spec.model_copy(update={"fields": tuple(field for field in spec.fields if field.name in fields)})
    named = {name: tuple(parts) for name, parts in crosses.items()}

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        encoder = Encoder(known, vocabularies)
        for batch in larger(batches, ROWS):
            ids = {name: block[:, 0] for name, block in encoder.slot_ids(batch).items()}
            codes = [pa.array(encoder.cross_code(parts, ids), pa.int64()) for parts in named.values()]
            yield pa.RecordBatch.from_arrays(codes, names=list(named))

    return df.select(fields).mapInArrow(run, T.StructType([T.StructField(name, T.LongType()) for name in named]))


def twin_fields(df: DataFrame, spec: FeatureSpec) -> frozenset[str]:
    """Fields with an event-fresh twin: their raw column has one, or that of a part of the cross."""
    raw = {field.name for field in spec.fields if field.name + FRESH in df.columns}
    crosses = {field.name for field in spec.fields if raw & {part.partition("#")[0] for part in field.parts}}
    return frozenset(raw | crosses)


def _reserved(df: DataFrame) -> dict[str, Column]:
    made = {
        LABEL: F.col(LABEL).cast("float"), POSITION: F.col(POSITION).cast("int"), USER: F.xxhash64(F.col(USER)),
        ROW: F.col(ROW), TIME: F.col(TIME), DRAWS: F.col(DRAWS),
    }
    return {name: column for name, column in made.items() if name in df.columns}


def _raw(spec: FeatureSpec) -> list[str]:
    """The raw column of every field that is read from one."""
    return [field.name for field in spec.fields if field.kind not in ("cross", "statistic")]
