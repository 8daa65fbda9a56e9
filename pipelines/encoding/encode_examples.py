"""Raw features -> ids by Spark's own functions, bit for bit what contracts/features/encoding.py does at request time.

Keys are looked up as pipelines/engine/key_lookup.py says, numbers by a binary search written out as one SQL expression,
crosses by arithmetic on the ids of their parts. Many edges are searched by steps through an array instead, because
Spark would not compile the expression.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from contracts.artifacts import FRESH, ID_PREFIX, LABEL, POSITION, ROW, TIME, USER
from contracts.config.section import Side
from contracts.features.feature_spec import FIRST_ID, UNKNOWN, FeatureField, FeatureSpec
from contracts.features.vocabulary import Vocabulary
from pipelines.engine.key_lookup import key_column, look_up, look_up_lists

WRITTEN_OUT = 128  # edges whose search still makes little code
SIDES: tuple[Side, ...] = ("user", "context", "item", "cross")


def encode(
    df: DataFrame, spec: FeatureSpec, vocabularies: Mapping[str, Vocabulary], keep: Sequence[str] = (),
) -> DataFrame:
    """Per row the columns

        `keep`, then _label float, _position int, _user bigint (a hash, to group by), _row, _time, where `df` has them
        SLOT          per id slot: int, or array<int> of the field's length
        NAME          per dense slot: the raw value as double
        SLOT@fresh, NAME@fresh        where any raw column has an event-fresh twin
    """
    encoded = with_ids(df, spec, vocabularies)
    columns = [*map(F.col, keep), *_reserved(df), *_slots(spec)]
    twins = twin_fields(df, spec)
    if twins:
        encoded = with_ids(encoded, spec, vocabularies, twins)
        columns += _slots(spec, twins)
    return encoded.select(columns)


def twin_fields(df: DataFrame, spec: FeatureSpec) -> frozenset[str]:
    """Fields with an event-fresh twin: their raw column has one, or that of a part of the cross."""
    raw = {field.name for field in spec.fields if field.name + FRESH in df.columns}
    crosses = {field.name for field in spec.fields if raw & {part.partition("#")[0] for part in field.parts}}
    return frozenset(raw | crosses)


def _reserved(df: DataFrame) -> list[Column]:
    made = {
        LABEL: F.col(LABEL).cast("float"), POSITION: F.col(POSITION).cast("int"), USER: F.xxhash64(F.col(USER)),
        ROW: F.col(ROW), TIME: F.col(TIME),
    }
    return [column.alias(name) for name, column in made.items() if name in df.columns]


def _slots(spec: FeatureSpec, twins: frozenset[str] = frozenset()) -> list[Column]:
    """Output columns of all fields, or of the twins alone."""
    twin = FRESH if twins else ""
    ids = [slot.name for slot in spec.id_slots(*SIDES) if not twins or slot.field in twins]
    dense = [slot.name for slot in spec.dense_slots(*SIDES) if not twins or slot.field in twins]
    id_columns = [F.col(ID_PREFIX + name + twin).alias(name + twin) for name in ids]
    return id_columns + [F.col(name + twin).cast("double") for name in dense]


def with_ids(
    df: DataFrame, spec: FeatureSpec, vocabularies: Mapping[str, Vocabulary], twins: frozenset[str] = frozenset(),
) -> DataFrame:
    """Adds a column `id:SLOT` per id slot; with twins, `id:SLOT@fresh` per slot of these fields alone."""
    fields = [field for field in spec.fields if not twins or field.name in twins]
    suffix = FRESH if twins else ""
    for field in fields:
        if field.kind not in ("cross", "statistic"):
            df = _with_field(df, field, suffix, vocabularies)
    for field in fields:
        if field.kind == "cross" and not field.product:
            df = _with_cross(df, field, radix_code(spec, field.parts, twins), suffix, vocabularies)
    return df


def _with_field(df: DataFrame, field: FeatureField, suffix: str, vocabularies: Mapping[str, Vocabulary]) -> DataFrame:
    source, name = field.name + suffix, ID_PREFIX + field.name + suffix
    if field.dense:
        bins = {f"{ID_PREFIX}{field.name}#{g}{suffix}": bin_ids(source, edges) for g, edges in field.edges.items()}
        return df.withColumns(bins) if bins else df
    vocabulary = vocabularies[field.vocabulary or ""]
    if field.kind == "categorical":
        return look_up(df, key_column(F.col(source), field.key_type), vocabulary, name)
    return look_up_lists(df, source, field.key_type, field.length, vocabulary, name)


def bin_ids(column: str, edges: Sequence[float]) -> Column:
    """Bin b holds edges[b-1] <= x < edges[b]; its id is b + 2; null and NaN get 1."""
    value = f"CAST(`{column}` AS DOUBLE)"
    found = _search(value, edges, 0, len(edges)) if len(edges) <= WRITTEN_OUT else _stepped_search(value, edges)
    return F.expr(f"CASE WHEN {value} IS NULL OR isnan({value}) THEN {UNKNOWN} ELSE {found} END")


def _stepped_search(value: str, edges: Sequence[float]) -> str:
    """The same number by steps of falling powers of two through an array: small code for many edges."""
    steps = ", ".join(str(1 << power) for power in reversed(range(len(edges).bit_length())))
    numbers = ", ".join(f"{edge!r}D" for edge in edges)
    passed = f"get(array({numbers}), at + step - 1) <= {value}"  # null, and so not passed, beyond the last edge
    return f"aggregate(array({steps}), 0, (at, step) -> CASE WHEN {passed} THEN at + step ELSE at END) + {FIRST_ID}"


def _search(value: str, edges: Sequence[float], low: int, high: int) -> str:
    """Number of edges <= value, plus 2, known to lie between `low` and `high`."""
    if low == high:
        return str(low + FIRST_ID)
    middle = (low + high) // 2
    above, below = _search(value, edges, middle + 1, high), _search(value, edges, low, middle)
    return f"CASE WHEN {value} >= ({edges[middle]!r}D) THEN {above} ELSE {below} END"


def _with_cross(
    df: DataFrame, field: FeatureField, code: Column, suffix: str, vocabularies: Mapping[str, Vocabulary],
) -> DataFrame:
    name = ID_PREFIX + field.name + suffix
    if field.buckets:
        return df.withColumn(name, (F.pmod(code, F.lit(field.buckets)) + FIRST_ID).cast("int"))
    return look_up(df, code, vocabularies[field.vocabulary or ""], name)


def radix_code(spec: FeatureSpec, parts: Sequence[str], twins: frozenset[str] = frozenset()) -> Column:
    """bigint ((id_0 * size_1) + id_1) * size_2 + id_2 ... of the ids of the parts, their twins' where they have any."""
    code = F.lit(0).cast("bigint")
    for part in parts:
        slot = spec.slot(part)
        code = code * F.lit(slot.size).cast("bigint") + F.col(ID_PREFIX + part + (FRESH if slot.field in twins else ""))
    return code
