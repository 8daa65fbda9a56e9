"""The Spark half of `sluice pretrain`: fitted encoding and statistics window -> co-occurrence graph of the pairs."""

from __future__ import annotations

from contracts.artifacts import Artifacts
from contracts.config.config import Config
from contracts.features import vocabulary
from contracts.features.feature_spec import FeatureSpec
from contracts.features.pair_graph import GraphManifest
from pipelines.cooccurrence import edge_counts
from pipelines.cooccurrence.chosen_pairs import chosen_pairs
from pipelines.jobs.feature_job import session


def run(config: Config, out: Artifacts) -> GraphManifest | None:
    """Returns the graph's manifest; None where no pair is configured or found. Raises what the parts raise."""
    pairs = chosen_pairs(config, out)
    if not pairs:
        return None
    spec, vocabularies = FeatureSpec.read(out.encoding), vocabulary.read_all(out.encoding)
    with session(config) as spark:
        return edge_counts.write(spark, config, out, spec, vocabularies, pairs)
