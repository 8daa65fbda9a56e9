from __future__ import annotations

import os
import subprocess
import sys

import pytest
import torch
from torch import Tensor, nn

from models.compiled import kernels
from models.layers.norm_relu_dropout import norm_relu_dropout


@pytest.fixture(params=["compiled", "plain torch"], autouse=True)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "plain torch":
        monkeypatch.setattr(kernels, "library", lambda: None)
    elif kernels.library() is None:
        pytest.skip("no C++ compiler on this machine")
    return request.param


def norm_of(width: int) -> nn.BatchNorm1d:
    norm = nn.BatchNorm1d(width)
    with torch.no_grad():
        norm.weight.uniform_(-2, 2)
        norm.bias.normal_()
    return norm


def by_hand(z: Tensor, norm: nn.BatchNorm1d) -> Tensor:
    """The formula, in double precision."""
    wide = z.double()
    scaled = (wide - wide.mean(dim=0)) / (wide.var(dim=0, correction=0) + norm.eps).sqrt()
    return torch.relu(norm.weight.double() * scaled + norm.bias.double())


@pytest.mark.parametrize(("rows", "width"), [(2, 1), (7, 5), (301, 33)])
def test_values_and_gradients_are_those_of_the_formula(rows: int, width: int) -> None:
    torch.manual_seed(rows)
    z, dy, norm = torch.randn(rows, width) * 3 + 100, torch.randn(rows, width), norm_of(width)
    found, expected = (z.clone().requires_grad_() for _ in range(2))
    y = norm_relu_dropout(found, norm, 0.0)
    y.backward(dy)
    ours = [part.grad.clone() for part in (norm.weight, norm.bias)]  # type: ignore[union-attr]
    norm.zero_grad()
    wanted = by_hand(expected, norm)
    wanted.backward(dy.double())
    torch.testing.assert_close(y.double(), wanted, atol=1e-3, rtol=1e-3)
    for got, want in ((found.grad, expected.grad), (ours[0], norm.weight.grad), (ours[1], norm.bias.grad)):
        torch.testing.assert_close(got, want, atol=5e-3, rtol=5e-3)


FEWER_THREADS = """
import torch
from torch import nn
from models.layers.norm_relu_dropout import norm_relu_dropout

torch.set_num_threads(8)
z, norm = torch.randn(301, 7).requires_grad_(), nn.BatchNorm1d(7)
torch.testing.assert_close(norm_relu_dropout(z, norm, 0.0), torch.relu(nn.BatchNorm1d(7)(z)), atol=1e-5, rtol=1e-5)
norm_relu_dropout(z, norm, 0.5).sum().backward()
assert z.grad.isfinite().all()
"""


@pytest.mark.slow
def test_fewer_threads_than_asked_for_compute_all_rows(way: str) -> None:
    if way == "compiled":
        subprocess.run([sys.executable, "-c", FEWER_THREADS], check=True, env=os.environ | {"OMP_THREAD_LIMIT": "2"})


@pytest.mark.parametrize("dropout", [0.998, 0.9999])
def test_where_nearly_all_is_dropped_gradients_are_numbers(dropout: float) -> None:
    z = torch.randn(64, 40).requires_grad_()
    norm_relu_dropout(z, norm_of(40), dropout).sum().backward()
    assert z.grad is not None
    assert z.grad.isfinite().all()


def test_running_figures_move_as_torch_moves_them() -> None:
    z, ours, theirs = torch.randn(64, 6) * 2 + 3, nn.BatchNorm1d(6), nn.BatchNorm1d(6)
    norm_relu_dropout(z, ours, 0.0)
    theirs(z)
    torch.testing.assert_close(ours.running_mean, theirs.running_mean)
    torch.testing.assert_close(ours.running_var, theirs.running_var)
    norm_relu_dropout(z, ours.eval(), 0.5)
    torch.testing.assert_close(ours.running_mean, theirs.running_mean)


def test_a_share_of_the_units_is_dropped_and_the_rest_scaled_up_forwards_and_backwards() -> None:
    torch.manual_seed(0)
    norm = nn.BatchNorm1d(50)
    nn.init.constant_(norm.bias, 10.0)  # nothing is cut by the ReLU
    z = torch.randn(2000, 50, requires_grad=True)
    y = norm_relu_dropout(z, norm, 0.25)
    kept = y != 0
    assert kept.float().mean() == pytest.approx(0.75, abs=0.01)
    assert kept.float().mean(dim=0).std() < 0.02  # no column, and no row, is treated otherwise
    assert kept.float().mean(dim=1).std() < 0.08
    whole = norm_relu_dropout(z.detach(), norm, 0.0)
    torch.testing.assert_close(y[kept], whole[kept] / 0.75)
    y.sum().backward()
    assert norm.bias.grad.sum() == pytest.approx(float(kept.sum()) / 0.75, rel=1e-4)  # type: ignore[union-attr]


def test_one_seed_gives_one_mask_and_two_give_two() -> None:
    z, norm, masks = torch.randn(100, 9), norm_of(9), []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        masks.append(norm_relu_dropout(z, norm, 0.5))
    assert torch.equal(masks[0], masks[1])
    assert not torch.equal(masks[0], masks[2])


def test_bfloat16_is_close_and_stays_bfloat16() -> None:
    z, norm = torch.randn(200, 12).bfloat16(), norm_of(12)
    y = norm_relu_dropout(z, norm, 0.0)
    assert y.dtype == torch.bfloat16
    torch.testing.assert_close(y.double(), by_hand(z, norm), atol=0.05, rtol=0.02)


def test_what_is_not_finite_does_not_vanish() -> None:
    z = torch.randn(10, 3)
    z[4, 1] = torch.nan
    assert torch.isnan(norm_relu_dropout(z, norm_of(3), 0.0)).any()
