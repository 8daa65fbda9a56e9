from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from models.networks.edge_tensor import EdgeTensor, extend, sharpen

B, N, D = 5, 4, 3


@pytest.fixture
def states() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return (torch.randn(B, N, D, generator=generator, dtype=torch.float64),
            torch.randn(B, N, D, generator=generator, dtype=torch.float64))


def hard(*edges: tuple[int, int]) -> torch.Tensor:
    adjacency = torch.zeros(N, N, dtype=torch.float64)
    for one, other in edges:
        adjacency[one, other] = 1.0
    return adjacency


def test_hard_propagation_is_the_mean_over_the_cartesian_product(states: tuple[torch.Tensor, torch.Tensor]) -> None:
    start, transformed = states
    layers = [hard((0, 1), (0, 2), (3, 1)), hard((0, 3), (0, 1), (2, 0))]
    reached = start
    for layer in layers:
        reached = extend(reached, transformed, layer)
    for node in range(N):
        neighbours = [layer[node].nonzero().flatten().tolist() for layer in layers]
        products = [torch.stack([transformed[:, j] for j in path]).prod(dim=0) if path else torch.ones(B, D)
                    for path in itertools.product(*[n for n in neighbours if n])]
        expected = start[:, node] * torch.stack(products).mean(dim=0)
        torch.testing.assert_close(reached[:, node], expected.double(), rtol=1e-6, atol=1e-9)


def test_a_row_without_an_edge_carries_its_state_forward(states: tuple[torch.Tensor, torch.Tensor]) -> None:
    start, transformed = states
    reached = extend(start, transformed, hard((0, 1)))
    torch.testing.assert_close(reached[:, 1:], start[:, 1:])
    assert not torch.equal(reached[:, 0], start[:, 0])


def slow_recursion(structure: np.ndarray, allowed: np.ndarray) -> list[np.ndarray]:
    """Eq. 7 read entry by entry: the mean of sigmoid(H)_lj over the fields l that i was last joined with."""
    nodes = len(allowed)
    joined = [[i] for i in range(nodes)]
    layers = []
    for free in structure:
        layer = np.zeros((nodes, nodes))
        for i, j in itertools.product(range(nodes), repeat=2):
            layer[i, j] = allowed[i, j] * np.mean([1 / (1 + np.exp(-free[one, j])) for one in joined[i]])
        layers.append(layer)
        joined = [np.flatnonzero(layer[i] > 0.5).tolist() or joined[i] for i in range(nodes)]
    return layers


@pytest.mark.parametrize("seed", range(5))
def test_the_recursion_is_the_one_of_the_paper_with_its_tail_kept(seed: int) -> None:
    torch.manual_seed(seed)
    allowed = ~torch.eye(N, dtype=torch.bool)
    edges = EdgeTensor(allowed, layers=3)
    with torch.no_grad():
        edges.structure.normal_(-0.4, 1.5)  # rows without an entry are common
        found = edges()
    expected = slow_recursion(edges.structure.detach().double().numpy(), allowed.numpy())
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one.numpy(), other, atol=1e-5)


def test_an_empty_row_returns_in_a_later_layer() -> None:
    edges = EdgeTensor(~torch.eye(2, dtype=torch.bool), layers=2)
    with torch.no_grad():
        edges.structure[0].fill_(-3.0)
        edges.structure[1].fill_(3.0)
        first, second = edges()
    assert (first <= 0.5).all()
    assert second[0, 1] > 0.5
    assert torch.isfinite(second).all()


def test_sharpening_keeps_one_half_and_orders_the_rest() -> None:
    soft = torch.tensor([0.0, 0.2, 0.5, 0.8, 1.0], dtype=torch.float64)
    sharp = sharpen(soft, 0.02)
    assert sharp[2] == pytest.approx(0.5)
    assert (sharp.diff() >= 0).all()
    assert sharp[1] < 1e-6
    assert sharp[3] > 1 - 1e-6


@pytest.mark.parametrize("temperature", [1.0, 0.02, 1e-4])
@pytest.mark.parametrize("size", [0.01, 5.0, 1e4])
def test_nothing_is_ever_not_a_number(
    temperature: float, size: float, states: tuple[torch.Tensor, torch.Tensor]
) -> None:
    torch.manual_seed(0)
    edges = EdgeTensor(~torch.eye(N, dtype=torch.bool), layers=3).double()
    with torch.no_grad():
        edges.structure.mul_(size / 0.01)
        edges.temperature.fill_(temperature)
    reached = states[0]
    for layer in edges():
        reached = extend(reached, states[1], layer)
    reached.square().sum().backward()
    assert torch.isfinite(reached).all()
    assert edges.structure.grad is not None
    assert torch.isfinite(edges.structure.grad).all()
