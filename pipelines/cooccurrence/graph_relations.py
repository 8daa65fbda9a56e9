"""The relations of the co-occurrence graph: pairs whose rate is learned, and links to what describes their values.

    U(A | G) = 1 - H(A | G) / H(A)      Theil's uncertainty coefficient: the share of A's entropy that G takes away

A field A of the same side and with fewer values is linked to a part G of a pair when U(A | G) >= 0.3: it is 1 where A
is an attribute of the value (the region of a city, the tier of a brand) and near 0 where A merely stands in the row.
A value that is rare in a pair then learns from others that share its attributes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from contracts.config.config import Config
from contracts.features.feature_spec import FeatureSpec
from contracts.features.pair_graph import Relation

Pair = tuple[str, str]  # slots
LEAST_UNCERTAINTY = 0.3


def relations_to_count(config: Config, spec: FeatureSpec, pairs: Sequence[Pair]) -> list[Relation]:
    """The pairs, then every link that may turn out to say something. Who a user or an item is describes no value."""
    identities = {
        field.name for field in config.fields if field.source_column in (config.log.user_id, config.log.item_id)
    }
    known = {slot.name: slot for slot in spec.id_slots("user", "context", "item")}
    plain = [slot for slot in known.values()
             if spec.by_name[slot.field].kind == "categorical" and slot.field not in identities]
    links = [
        Relation(part, other.name, "link")
        for part in dict.fromkeys(part for pair in pairs for part in pair)
        for other in plain
        if other.side == known[part].side and other.size < known[part].size
    ]
    paired = {frozenset(pair) for pair in pairs}
    return [*(Relation(*pair, "pair") for pair in pairs), *(r for r in links if frozenset(r[:2]) not in paired)]


def informative_relations(edges: DataFrame, relations: Sequence[Relation]) -> list[int]:
    """The pairs and the links with U(right | left) >= LEAST_UNCERTAINTY, as indices in their order."""
    shares = uncertainty(edges)
    return [
        number for number, relation in enumerate(relations)
        if relation.kind == "pair" or shares.get(number, 0.0) >= LEAST_UNCERTAINTY
    ]


def uncertainty(edges: DataFrame) -> dict[int, float]:
    """U(right | left) of each relation, weighted by impressions; 0 where `right` has one value.

    The engine says how often each number of impressions comes, and Python takes the logarithms: those of engines differ
    in the last digit, and so do their sums.
    """
    parts = [
        edges.groupBy("relation", *keys).agg(F.sum("impressions").alias("n"))
        .select(F.lit(name).alias("of"), "relation", "n")
        for name, keys in (("both", ("left", "right")), ("left", ("left",)), ("right", ("right",)))
    ]
    found = reduce(DataFrame.unionByName, parts).groupBy("of", "relation", "n").agg(F.count(F.lit(1)).alias("times"))
    terms: dict[int, dict[str, list[tuple[int, int]]]] = {}
    for row in found.collect():
        terms.setdefault(row["relation"], {}).setdefault(row["of"], []).append((row["n"], row["times"]))
    return {relation: _share(**of) for relation, of in terms.items()}


def _share(
    both: Sequence[tuple[int, int]], left: Sequence[tuple[int, int]], right: Sequence[tuple[int, int]]
) -> float:
    """From (impressions, how often): H(right) = log total - right / total, H(right | left) = (left - both) / total, of
    sums of n log n.
    """
    total = sum(n * times for n, times in both)
    logs = [math.fsum(times * n * math.log(n) for n, times in part) for part in (both, left, right)]
    entropy = math.log(total) - logs[2] / total
    return 1.0 - (logs[1] - logs[0]) / total / entropy if entropy > 1e-9 else 0.0
