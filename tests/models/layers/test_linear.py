from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from models.layers import linear as lib
from models.layers.linear import LARGE, Linear, available, linear

ROWS, INPUTS, OUTPUTS = 256, 96, 64


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a processor that is not Intel's, whatever this is."""
    monkeypatch.setattr(lib, "intel", lambda: False)


@pytest.fixture
def without_onednn() -> Iterator[None]:
    before = bool(torch.backends.mkldnn.enabled)
    torch.backends.mkldnn.enabled = False  # type: ignore[assignment]
    yield
    torch.backends.mkldnn.enabled = before  # type: ignore[assignment]


def _problem(inputs: int = INPUTS, outputs: int = OUTPUTS) -> tuple[Tensor, Tensor, Tensor]:
    torch.manual_seed(0)
    x, weight, bias = torch.randn(ROWS, inputs), torch.randn(outputs, inputs), torch.randn(outputs)
    return x.requires_grad_(), weight.requires_grad_(), bias.requires_grad_()


def _gradients(made: Tensor, *of: Tensor) -> tuple[Tensor, ...]:
    return torch.autograd.grad((made * torch.linspace(-1, 1, made.numel()).view_as(made)).sum(), of)


@pytest.mark.parametrize(("inputs", "outputs"), [(INPUTS, OUTPUTS), (OUTPUTS, INPUTS)])
def test_outputs_and_gradients_are_those_of_a_linear_layer(inputs: int, outputs: int) -> None:
    parts = _problem(inputs, outputs)
    assert ROWS * INPUTS * OUTPUTS >= LARGE
    made, wanted = linear(*parts), F.linear(*parts)
    torch.testing.assert_close(made, wanted)
    for ours, theirs in zip(_gradients(made, *parts), _gradients(wanted, *parts), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)


def test_gradients_that_nobody_wants_are_not_made() -> None:
    x, weight, _ = _problem()
    made = linear(x.detach(), weight)
    torch.testing.assert_close(_gradients(made, weight)[0], _gradients(F.linear(x, weight), weight)[0],
                               rtol=1e-4, atol=1e-4)


@pytest.mark.usefixtures("without_onednn")
def test_without_onednn_it_is_torch_s_own_product() -> None:
    parts = _problem()
    assert not available()
    assert torch.equal(linear(*parts), F.linear(*parts))


def test_on_a_processor_of_intel_s_it_is_torch_s_own_product(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lib, "intel", lambda: True)
    monkeypatch.setattr(torch.backends.mkl, "is_available", lambda: True)
    assert not available()
    parts = _problem()
    assert torch.equal(linear(*parts), F.linear(*parts))


def test_an_operator_that_is_missing_or_changed_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    def changed(*_: object) -> Tensor:
        raise TypeError("unexpected argument")

    monkeypatch.setattr(lib, "_product", changed)
    lib.found_here.cache_clear()
    try:
        assert not available()
        parts = _problem()
        assert torch.equal(linear(*parts), F.linear(*parts))
    finally:
        lib.found_here.cache_clear()


def test_small_and_half_products_are_torch_s_own() -> None:
    x, weight, bias = (part.detach() for part in _problem())
    assert torch.equal(linear(x[:8], weight, bias), F.linear(x[:8], weight, bias))
    with torch.autocast("cpu", torch.bfloat16):
        assert linear(x, weight, bias).dtype == torch.bfloat16
    three = x.view(2, -1, INPUTS)
    assert torch.equal(linear(three, weight, bias), F.linear(three, weight, bias))


def test_cut_transposed_and_repeated_matrices_are_read_as_they_are() -> None:
    x, weight, bias = (part.detach() for part in _problem())
    for rows in (torch.cat([x, x], 1)[:, 3 : 3 + INPUTS], x.T.contiguous().T, x[:1].expand(ROWS, -1)):
        torch.testing.assert_close(linear(rows, weight, bias), F.linear(rows, weight, bias), rtol=1e-4, atol=1e-4)
    gaps = torch.randn(2 * OUTPUTS)[::2]
    turned = weight.T.contiguous().T
    torch.testing.assert_close(linear(x, turned, gaps), F.linear(x, weight, gaps), rtol=1e-4, atol=1e-4)


def test_the_layer_has_the_state_of_torch_s() -> None:
    layer, plain = Linear(INPUTS, OUTPUTS), nn.Linear(INPUTS, OUTPUTS)
    layer.load_state_dict(plain.state_dict())
    x = _problem()[0]
    torch.testing.assert_close(layer(x), plain(x))


def test_what_is_compiled_has_torch_s_own_product() -> None:
    layer, x = Linear(256, 256), torch.randn(64, 256)
    graphs: list[torch.fx.GraphModule] = []

    def backend(graph: torch.fx.GraphModule, _: list[torch.Tensor]) -> Callable[..., Any]:
        graphs.append(graph)
        return graph.forward

    with torch.inference_mode():
        found = torch.compile(layer, backend=backend)(x)
        torch.testing.assert_close(found, layer(x), atol=1e-5, rtol=1e-5)
    assert graphs
    assert not [node for graph in graphs for node in graph.graph.nodes if "mkldnn" in str(node.target)]
