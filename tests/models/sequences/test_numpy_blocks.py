from __future__ import annotations

import numpy as np
import pytest
import torch

from models.layers.sequence_blocks import BLOCKS
from models.sequences.numpy_blocks import NUMPY_BLOCKS, Norm, logistic

WIDTH, LENGTH = 12, 9


@pytest.mark.parametrize("distance", [True, False])
@pytest.mark.parametrize("heads", [1, 3])
@pytest.mark.parametrize("name", BLOCKS)
def test_a_block_is_torchs_at_every_place_and_at_the_last_alone(name, heads, distance):
    torch.manual_seed(0)
    block = BLOCKS[name](WIDTH, heads, LENGTH, 0.5, 2, distance).eval()
    for parameter in block.parameters():
        torch.nn.init.normal_(parameter)
    made = NUMPY_BLOCKS[name](block)
    for length in (1, 4, LENGTH):
        x = torch.randn(1, length, WIDTH)
        expected = block(x)[0].detach().numpy()
        np.testing.assert_allclose(made.every(x[0].numpy()), expected, rtol=1e-3, atol=1e-3)
        np.testing.assert_allclose(made.last(x[0].numpy()), expected[-1], rtol=1e-3, atol=1e-3)


def test_every_kind_of_block_has_a_form_in_numpy():
    assert NUMPY_BLOCKS.keys() == BLOCKS.keys()


def test_the_norm_is_torchs():
    layer, x = torch.nn.LayerNorm(5), torch.randn(3, 5)
    torch.nn.init.normal_(layer.weight)
    np.testing.assert_allclose(Norm(layer)(x.numpy()), layer(x).detach().numpy(), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(Norm(layer)(x[0].numpy()), layer(x)[0].detach().numpy(), rtol=1e-5, atol=1e-6)


def test_the_logistic_function_does_not_overflow():
    found = logistic(np.array([-1000, 0, 1000], np.float32))
    assert found.tolist() == [0, 0.5, 1]
    assert found.dtype == np.float32
