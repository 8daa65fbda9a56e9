from __future__ import annotations

import pytest
import torch

from models.layers.sequence_blocks import BLOCKS, Attention, DistanceBias, SwiGlu

WIDTH, HEADS, LENGTH = 8, 2, 6


@pytest.mark.parametrize("distance", [True, False])
@pytest.mark.parametrize("name", BLOCKS)
def test_a_place_sees_itself_and_those_before_it_alone(name, distance):
    torch.manual_seed(0)
    block = BLOCKS[name](WIDTH, HEADS, LENGTH, 0.0, 2, distance).eval()
    states = torch.randn(3, LENGTH, WIDTH)
    changed = states.clone()
    changed[:, 3, 0] += 1
    before, after = block(states), block(changed)
    assert torch.equal(before[:, :3], after[:, :3])
    for place in range(3, LENGTH):
        assert not torch.allclose(before[:, place], after[:, place])


@pytest.mark.parametrize("name", BLOCKS)
def test_every_weight_gets_a_gradient(name):
    torch.manual_seed(0)
    block = BLOCKS[name](WIDTH, HEADS, LENGTH, 0.0, 2, True)
    block(torch.randn(3, LENGTH, WIDTH)).square().sum().backward()
    gradients = {key: weight.grad for key, weight in block.named_parameters()}
    assert [key for key, grad in gradients.items() if grad is None or not grad.isfinite().all()] == []


def test_distance_is_a_number_for_how_many_actions_ago():
    bias = DistanceBias(1, 4)
    bias.bias.data = torch.tensor([[1.0, 2.0, 3.0, 4.0]])
    inf = -torch.inf
    assert bias(3).tolist() == [[[1, inf, inf], [2, 1, inf], [3, 2, 1]]]


def test_attention_without_distance_is_the_mean_where_all_keys_are_equal():
    attention = Attention(2, 1, 3, 0.0, distance=False)
    with torch.no_grad():
        attention.into.weight.copy_(torch.cat([torch.zeros(4, 2), torch.eye(2)]))
        attention.into.bias.zero_()
        attention.out.weight.copy_(torch.eye(2))
        attention.out.bias.zero_()
    x = torch.tensor([[[2.0, 0.0], [4.0, 2.0], [0.0, 1.0]]])
    torch.testing.assert_close(attention(x), torch.tensor([[[2.0, 0.0], [3.0, 1.0], [2.0, 1.0]]]))


def test_swiglu_is_its_formula():
    torch.manual_seed(0)
    layer, x = SwiGlu(3, 2), torch.randn(5, 3)
    gate, value = (x @ layer.into.weight.T).split(2, dim=1)
    torch.testing.assert_close(layer(x), (gate * gate.sigmoid() * value) @ layer.out.weight.T)


def test_distances_are_counted_where_their_numbers_lie():
    """A ranker's block is trained on a GPU where there is one; "meta" refuses others' numbers as that does."""
    assert DistanceBias(1, 4).to("meta")(3).device.type == "meta"
