from __future__ import annotations

import pytest
import torch
from torch import nn

from models.layers.sequence_blocks import BLOCKS, Attention, DistanceBias, Dropout, SwiGlu

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


@pytest.mark.parametrize("distance", [True, False])
def test_attention_in_training_is_the_same_but_for_dropout(distance):
    torch.manual_seed(0)
    attention = Attention(WIDTH, HEADS, LENGTH, 0.0, distance)
    if attention.distance:
        torch.nn.init.normal_(attention.distance.bias)
    states = torch.randn(3, 5, WIDTH)
    torch.testing.assert_close(attention.train()(states), attention.eval()(states))
    dropped = Attention(WIDTH, HEADS, LENGTH, 0.5, distance)
    dropped.load_state_dict(attention.state_dict())
    assert not torch.allclose(dropped.train()(states), dropped.eval()(states))
    assert torch.equal(dropped(states), attention(states))


def test_swiglu_is_its_formula():
    torch.manual_seed(0)
    layer, x = SwiGlu(3, 2), torch.randn(5, 3)
    gate, value = (x @ layer.into.weight.T).split(2, dim=1)
    torch.testing.assert_close(layer(x), (gate * gate.sigmoid() * value) @ layer.out.weight.T)


def test_distances_are_counted_where_their_numbers_lie():
    """A ranker's block is trained on a GPU where there is one; "meta" refuses others' numbers as that does."""
    assert DistanceBias(1, 4).to("meta")(3).device.type == "meta"


@pytest.mark.parametrize("p", [0.1, 0.3, 0.5, 0.9])
def test_as_many_are_dropped_as_asked_for_and_the_mean_stays(p):
    torch.manual_seed(0)
    found = Dropout(p)(torch.ones(400, 1001))
    share = (found == 0).float().mean()
    torch.testing.assert_close(share, torch.tensor(p), atol=0.004, rtol=0)
    torch.testing.assert_close(found.mean(), torch.tensor(1.0), atol=0.02, rtol=0)
    assert found.unique().numel() == 2
    assert float(found.max()) == pytest.approx(1 / (1 - p), rel=1e-4 / (1 - p))


def test_numbers_beside_each_other_are_dropped_by_themselves():
    torch.manual_seed(0)
    left = (Dropout(0.5)(torch.ones(100_000, 4)) > 0).float()
    torch.testing.assert_close(torch.cov(left.T), torch.eye(4) / 4, atol=0.005, rtol=0)


def test_a_gradient_takes_the_way_of_its_number():
    torch.manual_seed(0)
    x = torch.randn(7, 5, requires_grad=True)
    found = Dropout(0.4)(x)
    found.sum().backward()
    assert x.grad is not None
    torch.testing.assert_close(x.grad * x, found)
    assert 0 < int((x.grad == 0).sum()) < x.numel()


def test_a_seed_gives_one_mask_and_another_seed_another():
    made = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        made.append(Dropout(0.5)(torch.ones(33)))
    assert torch.equal(made[0], made[1])
    assert not torch.equal(made[0], made[2])


@pytest.mark.parametrize("layer", [Dropout(0.5).eval(), Dropout(0.0)])
def test_nothing_is_dropped_outside_training_nor_with_a_probability_of_zero(layer: nn.Module):
    x = torch.randn(6, 3)
    assert layer(x) is x


def test_numbers_keep_their_type_and_lie_where_they_lay():
    assert Dropout(0.5)(torch.ones(8, dtype=torch.bfloat16)).dtype == torch.bfloat16
    assert Dropout(0.5)(torch.ones(8, device="meta")).device.type == "meta"
    assert Dropout(0.5)(torch.ones(0, 4)).shape == (0, 4)
