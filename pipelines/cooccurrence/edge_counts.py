"""Counts the co-occurrence graph of field values in the statistics window; writes its nodes, edges and manifest.

    node (slot, id)                a value; `id` is its encoded id, so that a request needs no look-up to find it
    edge (relation, left, right)   two values that stood in one row: impressions, clicks, exposure,
                                   rate = (clicks + s * prior) / (exposure + s), prior = the relation's own rate

Exposure is impressions as if shown in the first slot (pipelines/cooccurrence/exposure.py), so that rates are those of
position 1, at which the server ranks.

Relations are the chosen pairs and, for the encoder of models/pair_rates/pcf_gnn.py, links between a value and what
describes it (pipelines/cooccurrence/graph_relations.py). A slot of several values gives one edge per value. Counting is
one grouping with partial sums on each side of the shuffle, so a value that stands in most rows costs no more than
others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from contracts.artifacts import ID_PREFIX, LABEL, Artifacts
from contracts.config.config import Config
from contracts.errors import EmptyLogError
from contracts.features.feature_spec import PADDING, FeatureSpec
from contracts.features.pair_graph import EDGES, NODES, GraphManifest, Relation, StoredTable
from contracts.features.vocabulary import Vocabulary
from pipelines.cooccurrence.exposure import EXPOSURE, with_exposure
from pipelines.cooccurrence.graph_relations import Pair, informative_relations, relations_to_count
from pipelines.encoding.encode_examples import with_ids
from pipelines.encoding.training_window import statistics_rows
from pipelines.engine.content_hash import content_hash
from pipelines.engine.day_partitions import read_table, rows_in, write_whole
from pipelines.engine.step import step

MILLION = 1_000_000
COUNTS = {"impressions": "bigint", "clicks": "bigint", "exposure": "double"}
EDGE = {"relation": "int", "left": "int", "right": "int", **COUNTS}
OCCURRENCES = "array<struct<relation:int,left:int,right:int>>"
VALUES = "array<struct<slot:string,id:int>>"
NODE = {"slot": "string", "id": "int", **COUNTS}
ROW_NEEDS = {LABEL: "float", EXPOSURE: "double"}


def write(
    spark: SparkSession, config: Config, out: Artifacts, spec: FeatureSpec, vocabularies: Mapping[str, Vocabulary],
    pairs: Sequence[Pair],
) -> GraphManifest:
    """Replaces the graph and returns its manifest. Raises EmptyLogError when the window has no decided impression."""
    relations = relations_to_count(config, spec, pairs)
    window = with_exposure(statistics_rows(spark, config, out))
    rows = encoded_rows(window, spec, vocabularies, _slots(relations)).persist()
    try:
        counted = count_edges(rows, relations).persist()
        kept = informative_relations(counted, relations)
        window_rows, clicks = _rows_and_clicks(rows)
        informative = tuple(relations[number] for number in kept)
        edges = with_rates(renumbered(counted, kept), config.pair_rates.smoothing)
        slots = _slots(informative)
        manifest = GraphManifest(
            slots={slot: spec.slot(slot).size for slot in slots}, relations=informative,
            smoothing=config.pair_rates.smoothing, rows=window_rows, clicks=clicks, rate=clicks / window_rows,
            edges=_store(edges, out.pair_rates / EDGES), nodes=_store(count_nodes(rows, slots), out.pair_rates / NODES),
        )
        counted.unpersist()
    finally:
        rows.unpersist()
    manifest.write(out.pair_rates)
    return manifest


def _slots(relations: Sequence[Relation]) -> list[str]:
    return list(dict.fromkeys(slot for relation in relations for slot in relation[:2]))


def encoded_rows(
    rows: DataFrame, spec: FeatureSpec, vocabularies: Mapping[str, Vocabulary], slots: Sequence[str]
) -> DataFrame:
    """`_label`, `_exposure` and, per slot, the array of its ids: one, or those of a list, each once, not padding."""
    fields = {spec.slot(slot).field for slot in slots}
    needed = spec.model_copy(update={"fields": tuple(field for field in spec.fields if field.name in fields)})
    found = with_ids(rows, needed, vocabularies)
    return found.select(LABEL, EXPOSURE, *(_ids(spec, slot).alias(slot) for slot in slots))


def _ids(spec: FeatureSpec, slot: str) -> Column:
    ids = F.col(f"`{ID_PREFIX}{slot}`")
    several = spec.by_name[spec.slot(slot).field].kind == "multi_valued"
    return F.array_distinct(F.filter(ids, lambda known: known != PADDING)) if several else F.array(ids)


@step(needs=ROW_NEEDS, gives=EDGE)
def count_edges(rows: DataFrame, relations: Sequence[Relation]) -> DataFrame:
    """One row per relation and pair of ids that occurred together."""
    parts = [_occurrences(number, relation).cast(OCCURRENCES) for number, relation in enumerate(relations)]
    exploded = rows.select(*ROW_NEEDS, F.explode(F.concat(*parts)).alias("edge")).select(*ROW_NEEDS, "edge.*")
    return _counts(exploded, "relation", "left", "right")


def _occurrences(number: int, relation: Relation) -> Column:
    def partners(left: Column) -> Column:
        return F.transform(
            F.col(f"`{relation.right}`"),
            lambda right: F.struct(F.lit(number).alias("relation"), left.alias("left"), right.alias("right")),
        )

    return F.flatten(F.transform(F.col(f"`{relation.left}`"), partners))


@step(needs=ROW_NEEDS, gives=NODE)
def count_nodes(rows: DataFrame, slots: Sequence[str]) -> DataFrame:
    """One row per slot and id that occurred in it."""
    def values(slot: str) -> Column:
        value = F.transform(F.col(f"`{slot}`"), lambda value: F.struct(F.lit(slot).alias("slot"), value.alias("id")))
        return value.cast(VALUES)

    each = F.explode(F.concat(*map(values, slots))).alias("node")
    exploded = rows.select(*ROW_NEEDS, each).select(*ROW_NEEDS, "node.*")
    return _counts(exploded, "slot", "id")


def _counts(exploded: DataFrame, *keys: str) -> DataFrame:
    return exploded.groupBy(*keys).agg(
        F.count("*").alias("impressions"), F.sum(LABEL).cast("bigint").alias("clicks"),
        (F.sum(_millionths(EXPOSURE)) / MILLION).alias("exposure"),
    )


def _millionths(column: str) -> Column:
    """As whole numbers, whose sum is the same in whatever order rows come."""
    return F.floor(F.col(column) * MILLION + 0.5).cast("bigint")


@step(needs=EDGE, gives=EDGE)
def renumbered(edges: DataFrame, kept: Sequence[int]) -> DataFrame:
    """The kept relations alone, numbered in their order."""
    number = F.array_position(F.lit(list(kept)), F.col("relation")) - 1
    return edges.where(F.col("relation").isin(list(kept))).withColumn("relation", number.cast("int"))


@step(needs=EDGE, gives={**EDGE, "rate": "double"})
def with_rates(edges: DataFrame, smoothing: float) -> DataFrame:
    """Adds `rate` as the head of the file says; `smoothing` s in pseudo-impressions."""
    shown = F.sum(_millionths("exposure")) / MILLION
    totals = edges.groupBy("relation").agg((F.sum("clicks") / shown).alias("prior"))
    smoothed = (F.col("clicks") + smoothing * F.col("prior")) / (F.col("exposure") + smoothing)
    return edges.join(F.broadcast(totals), "relation").withColumn("rate", smoothed).drop("prior")


def _store(frame: DataFrame, folder: Path) -> StoredTable:
    write_whole(frame, folder)
    written = read_table(frame.sparkSession, folder)
    return StoredTable(rows=rows_in(folder), content_hash=content_hash(written))


def _rows_and_clicks(rows: DataFrame) -> tuple[int, int]:
    """Raises EmptyLogError when there is no row."""
    count, clicks = rows.agg(F.count("*"), F.sum(LABEL)).collect()[0]
    if not count:
        raise EmptyLogError("the statistics window has no impression whose label was decided inside it; lengthen "
                            "windows.statistics")
    return int(count), int(clicks)
