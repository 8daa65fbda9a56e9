"""What statistics cost in bytes, three ways.

    own       what the served statistics hold: node vectors, shared by all pairs a slot takes part in, and the heads
    table     observed pairs x 12 bytes (code of the pair and its logit)
    dense     product of the two vocabularies x 4 bytes, summed over pairs
"""

from __future__ import annotations

from models.layers.pair_rate_features import PairRateFeatures
from models.pair_rates.graph import PairGraph

TABLE_ENTRY, NUMBER = 12, 4


def memory(made: PairRateFeatures, graph: PairGraph) -> dict[str, int]:
    """`own` are the bytes of what `made` really holds."""
    pairs = graph.relations[: len(graph.pairs)]
    sizes = [(graph.slots[pair.left], graph.slots[pair.right]) for pair in pairs]
    return {
        "own": sum(tensor.numel() * tensor.element_size() for tensor in made.state_dict().values()),
        "table": TABLE_ENTRY * len(graph.targets),
        "dense": NUMBER * sum(left * right for left, right in sizes),
    }
