"""The MLP's own outputs."""

from __future__ import annotations

import pytest
import torch

from models.inference.numpy_mlp import NumpyMlp
from models.layers.mlp import Mlp


@pytest.mark.parametrize("hidden", [(), (5,), (7, 4)])
@pytest.mark.parametrize("rows", [1, 20])
@torch.inference_mode()
def test_the_networks_outputs(hidden: tuple[int, ...], rows: int) -> None:
    torch.manual_seed(0)
    mlp = Mlp(6, 9, hidden, out=2).eval()
    request, candidate = torch.randn(rows, 6), torch.randn(20, 9)
    served = NumpyMlp(mlp)
    found = served(served.request_part(request.numpy()), candidate.numpy())
    torch.testing.assert_close(torch.from_numpy(found), mlp(request, candidate), atol=1e-5, rtol=1e-5)
