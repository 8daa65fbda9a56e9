"""The Spark half of `sluice pretrain`: fitted encoding and statistics window -> co-occurrence graph of the pairs."""

from __future__ import annotations

from contracts.artifacts import Artifacts
from contracts.config.config import Config
from contracts.features import vocabulary
from contracts.features.feature_spec import FeatureSpec
from contracts.features.pair_graph import GraphManifest
from pipelines.cooccurrence import edge_counts
from pipelines.engine.session import session


def write_pair_graph(config: Config, out: Artifacts) -> GraphManifest | None:
    """Returns the graph's manifest; None where no pair is configured. Raises what the parts raise."""
    pairs = list(config.pair_rates.pairs)
    if not pairs or config.pair_rates.model == "none":
        return None
    spec, vocabularies = FeatureSpec.read(out.encoding), vocabulary.read_all(out.encoding)
    with session(config.spark, f"sluice pretrain {config.name}") as spark:
        return edge_counts.write(spark, config, out, spec, vocabularies, pairs)
