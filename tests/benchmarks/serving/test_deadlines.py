from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from benchmarks.serving.deadlines import Slow, main
from models.examples.batches import FeatureBlock
from tests.benchmarks.printed_figures import refuses


class Half(nn.Module):
    def forward(self, *_: Any) -> torch.Tensor:
        return torch.full((3,), 0.5)


def test_a_slow_ranker_scores_as_the_ranker_does() -> None:
    block = FeatureBlock(torch.zeros(3, 1), torch.zeros(3, 1))
    assert Slow(Half(), 0.0)(block, block).tolist() == [0.5] * 3


@pytest.mark.parametrize("options", [(), ("bundle", "--calls", "many")])
def test_wrong_options_are_refused(options: tuple[str, ...]) -> None:
    assert refuses(main, *options)
