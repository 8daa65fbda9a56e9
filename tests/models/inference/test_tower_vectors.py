"""The towers' and the pre-ranker's own results, by other sums."""

from __future__ import annotations

import pytest
import torch

from contracts.features.encoding import Encoded
from contracts.features.feature_spec import FeatureSpec
from models.examples.batches import Batch, FeatureBlock
from models.inference.tower_vectors import FoldedPreRanker, UserTower
from models.networks.tower_pre_ranker import PreRanker
from models.networks.two_tower import TwoTower

pytestmark = pytest.mark.usefixtures("either")

DIM = 6


@torch.inference_mode()
def test_the_users_vector(spec: FeatureSpec, batch: Batch) -> None:
    torch.manual_seed(0)
    towers = TwoTower(spec, 4, (9,), DIM, 0.0, 0.1).eval()
    served = UserTower(towers)
    for row in range(8):
        one = FeatureBlock(*(part[row : row + 1] for part in batch.request))
        found = served(Encoded(one.ids.numpy(), one.dense.numpy()))
        torch.testing.assert_close(torch.from_numpy(found), towers.user_vector(one)[0])


@pytest.mark.parametrize("hidden", [(), (5,), (7, 4)])
@torch.inference_mode()
def test_the_pre_rankers_logits(hidden: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    network = PreRanker(DIM, hidden).eval()
    user, items = torch.randn(1, DIM), torch.randn(40, DIM)
    served = FoldedPreRanker(network)
    found = served.logits(served.matrix(user[0].numpy()), items.numpy())
    torch.testing.assert_close(torch.from_numpy(found), network(user, items), atol=1e-5, rtol=1e-5)
