"""The attention's own results: histories of any length, folded for one request or as they stand for several."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from contracts.features.encoding import Encoded
from contracts.features.feature_spec import FeatureSpec
from models.examples.batches import Batch, FeatureBlock
from models.inference.split_din import SplitDin
from models.networks.din import Din


def encoded(block: FeatureBlock) -> Encoded:
    return Encoded(block.ids.numpy(), block.dense.numpy())


def network(spec: FeatureSpec) -> Din:
    torch.manual_seed(3)
    made = Din(spec, 4, (8, 6), 0.0).eval()
    for parameter in made.parameters():
        nn.init.normal_(parameter, std=0.5)
    with torch.no_grad():
        made.embedding.weight[0] = 0.0
    return made


@torch.inference_mode()
def test_every_request_of_a_batch_folded(spec: FeatureSpec, batch: Batch) -> None:
    """Among them empty and full histories."""
    made = network(spec)
    served, candidates = SplitDin(made), encoded(batch.candidate)
    histories = set()
    slot = next(slot for slot in spec.block_ids("request") if slot.sequence)
    for row in range(len(batch.label)):
        one = FeatureBlock(*(part[row : row + 1] for part in batch.request))
        histories.add(int((one.ids[0, slot.start : slot.start + slot.width] != 0).sum()))
        found = torch.from_numpy(served.logits(served.begin(encoded(one)), candidates))
        torch.testing.assert_close(found, made(one, batch.candidate), atol=1e-5, rtol=1e-5)
    assert {0, slot.width} <= histories


@torch.inference_mode()
def test_a_row_of_the_request_per_candidate(spec: FeatureSpec, batch: Batch) -> None:
    made = network(spec)
    served = SplitDin(made)
    found = torch.from_numpy(served.logits(served.begin(encoded(batch.request)), encoded(batch.candidate)))
    torch.testing.assert_close(found, made(batch.request, batch.candidate), atol=1e-5, rtol=1e-5)


def test_interests_are_named(spec: FeatureSpec) -> None:
    served = SplitDin(network(spec))
    assert (served.interest_fields, served.dim) == ([("history", "item")], 4)


@pytest.mark.parametrize("scale", [1.0, 300.0])
@torch.inference_mode()
def test_scores_of_any_size(spec: FeatureSpec, batch: Batch, scale: float) -> None:
    """As large as an exponential cannot be."""
    made = network(spec)
    for layer in made.attention:
        layer.score.weight *= scale  # type: ignore[union-attr, operator]
    one = FeatureBlock(*(part[:1] for part in batch.request))
    served = SplitDin(made)
    found = torch.from_numpy(served.logits(served.begin(encoded(one)), encoded(batch.candidate)))
    torch.testing.assert_close(found, made(one, batch.candidate), atol=1e-4, rtol=1e-4)
