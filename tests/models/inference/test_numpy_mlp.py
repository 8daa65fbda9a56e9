"""The MLP's own outputs."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from models.inference.numpy_mlp import NumpyMlp
from models.inference.packed_matrix import PackedMatrix
from models.layers.mlp import Mlp


@pytest.mark.parametrize("hidden", [(), (5,), (7, 4)])
@pytest.mark.parametrize("rows", [1, 20])
@torch.inference_mode()
@pytest.mark.usefixtures("either")
def test_the_networks_outputs(hidden: tuple[int, ...], rows: int) -> None:
    torch.manual_seed(0)
    mlp = Mlp(6, 9, hidden, out=2).eval()
    request, candidate = torch.randn(rows, 6), torch.randn(20, 9)
    served = NumpyMlp(mlp)
    found = served(served.request_part(request.numpy()), candidate.numpy())
    torch.testing.assert_close(torch.from_numpy(found), mlp(request, candidate), atol=1e-5, rtol=1e-5)


@pytest.mark.usefixtures("either")
def test_a_first_layer_may_come_in_parts() -> None:
    torch.manual_seed(0)
    served = NumpyMlp(Mlp(6, 9, (7, 4), out=1).eval())
    parts = [torch.randn(20, 7).numpy() for _ in range(2)]
    columns, matrix = torch.randn(20, 3).numpy(), PackedMatrix(torch.randn(3, 7).numpy())
    whole = parts[0] + parts[1] + columns @ matrix.plain
    expected = served.after_first(whole.copy())
    np.testing.assert_allclose(served.of_sum(parts[0].copy(), parts[1], columns, matrix), expected, atol=1e-5)
    np.testing.assert_allclose(served.of_sum(whole - parts[1], parts[1]), expected, atol=1e-5)
    one = parts[1][:1]
    np.testing.assert_allclose(served.of_sum(whole - one, one), expected, atol=1e-5)
    np.testing.assert_allclose(served.of_sum(None, one, columns, matrix),
                               served.after_first(columns @ matrix.plain + one), atol=1e-5)
