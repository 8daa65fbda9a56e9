"""Names of the columns in which a network reads its inputs, so that two networks of unequal specs can be compared.

A network whose fields stand elsewhere than in what its first layers read says so itself: `per_field` names, for each of
its parameters, the layout of each axis, "" where it has nothing to do with fields; `layouts()` gives the layouts that
only it has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from torch import nn

from contracts.features.feature_spec import BLOCK_SIDES, DenseSlot, FeatureSpec
from models.layers import number_encoding
from models.layers.embedding import BlockReader, FusedEmbedding

ENCODED = "request encoded", "candidate encoded"  # numbers, one column each
OF_ALL: dict[str, tuple[str, ...]] = {
    "embedding.request_encoding.frequencies": (ENCODED[0], ""),
    "embedding.candidate_encoding.frequencies": (ENCODED[1], ""),
    "request_numbers": ("request numbers", ""), "candidate_numbers": ("candidate numbers", ""),
    "request_dense": ("request numbers",), "candidate_dense": ("plain candidate numbers",)}


def per_field(network: nn.Module) -> tuple[Mapping[str, tuple[str, ...]], bool]:
    """Parameter -> the layout of each axis; and whether that is all that depends on fields, embeddings apart."""
    own = getattr(network, "per_field", None)
    return ({**OF_ALL, **own}, True) if own is not None else (OF_ALL, False)


def input_columns(network: nn.Module, spec: FeatureSpec) -> dict[str, list[str]]:
    """Every layout that a layer of the network may read: kind -> a name per column. Empty without embeddings."""
    embedding = getattr(network, "embedding", None)
    if not isinstance(embedding, FusedEmbedding):
        return {}
    request_dense = _numbers(spec.block_dense("request"), embedding.request_encoding)
    candidate_dense = _numbers(spec.block_dense("candidate"), embedding.candidate_encoding)
    if embedding.products is None and embedding.pair_rates is None:
        candidate_dense = candidate_dense[: embedding.candidate_numbers]
    channels = embedding.pair_rates.width // len(embedding.pair_rates.parts) if embedding.pair_rates else 0
    pair_rates = [name for field in spec.pair_rates() for name in _several(field.name, channels)]
    width = embedding.products.weight.shape[1] if embedding.products else 0
    products = [name for field in spec.products() for name in _several(field.name, width)]
    left = _slots(embedding.request, embedding.dim), request_dense
    right = _slots(embedding.candidate, embedding.dim), [*products, *candidate_dense, *pair_rates]
    request, candidate = left[0] + left[1], right[0] + right[1]
    attended = [f"attention {name}" for pair, _ in getattr(network, "pairs", ())
                for name in _several(pair.name, embedding.dim)]
    return {
        "request": request, "candidate": candidate + attended, "both": request + candidate, "request numbers": left[1],
        "candidate numbers": right[1], "plain candidate numbers": [*candidate_dense, *pair_rates],
        "numbers": left[1] + right[1],
        "slots": [slot.name for reader in (embedding.request, embedding.candidate) for slot in reader.slots],
        **{kind: [slot.name for slot in spec.block_dense(block)]
           for kind, block in zip(ENCODED, BLOCK_SIDES, strict=True)},
        **(network.layouts() if hasattr(network, "layouts") else {}),  # type: ignore[operator]
    }


def _numbers(slots: Sequence[DenseSlot], encoding: nn.Module | None) -> list[str]:
    """The slots, and what encodes them, numbered."""
    made = [slot.name for slot in number_encoding.sources(encoding, slots)]
    return [*(slot.name for slot in slots), *(f"{name} {made[:place].count(name)}" for place, name in enumerate(made))]


def _slots(reader: BlockReader, dim: int) -> list[str]:
    return [name for slot in reader.slots for name in _several(slot.name, dim)]


def _several(name: str, count: int) -> Sequence[str]:
    return [f"{name}[{number}]" for number in range(count)]
