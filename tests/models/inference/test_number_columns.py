from __future__ import annotations

import numpy as np
import pytest
import torch

from models.inference.number_columns import NumberColumns
from models.layers.number_encoding import Periodic, PiecewiseLinear

DENSE = np.random.default_rng(0).normal(0, 2, (50, 2)).astype(np.float32)
ENCODINGS = [PiecewiseLinear([np.array([-1.0, 0.0, 2.0]), np.array([0.0, 0.25])]), Periodic(2)]


@pytest.mark.parametrize("encoding", ENCODINGS)
@torch.inference_mode()
def test_numpy_computes_what_the_layer_computes(encoding: torch.nn.Module) -> None:
    given, found = NumberColumns(encoding)(DENSE)
    assert given is DENSE
    np.testing.assert_allclose(found, encoding(torch.from_numpy(DENSE)).numpy(), atol=1e-6)


def test_without_an_encoding_the_numbers_stay_as_they_are() -> None:
    (alone,) = NumberColumns(None)(DENSE)
    assert alone is DENSE
