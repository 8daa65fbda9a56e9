"""The Spark half of `sluice pretrain`: fitted encoding and statistics window -> co-occurrence graph of the pairs."""

from __future__ import annotations

from contracts.artifacts import Artifacts
from contracts.config.config import Config
from contracts.features import found_crosses, vocabulary
from contracts.features.feature_spec import FeatureSpec
from contracts.features.pair_graph import GraphManifest
from contracts.windows import read_timed
from pipelines.cooccurrence import edge_counts
from pipelines.cooccurrence.graph_relations import Pair
from pipelines.engine.session import session


def write_pair_graph(config: Config, out: Artifacts) -> GraphManifest | None:
    """Returns the graph's manifest; None where no pair is configured or found. Raises what the parts raise."""
    pairs = chosen_pairs(config, out)
    if not pairs:
        return None
    spec, vocabularies = FeatureSpec.read(out.encoding), vocabulary.read_all(out.encoding)
    with session(config.spark, f"sluice pretrain {config.name}") as spark:
        return edge_counts.write(spark, config, out, spec, vocabularies, pairs)


def chosen_pairs(config: Config, out: Artifacts) -> list[Pair]:
    """Which pairs of fields get a rate: those configured, in their order, else the found crosses of two, best first.

    None where pair rates are switched off, or are not configured and there is no statistics window to take them from.
    """
    if config.pair_rates.model == "none":
        return []
    if config.pair_rates.pairs:
        return list(config.pair_rates.pairs)
    searched = found_crosses.read(out.crosses)
    if searched is None or config.log.event_time is None or "statistics" not in read_timed(out.windows):
        return []
    pairs = dict.fromkeys((cross.parts[0], cross.parts[1]) for cross in searched.crosses if cross.order == 2)
    return [(left, right) for left, right in pairs if left.partition("#")[0] != right.partition("#")[0]]
