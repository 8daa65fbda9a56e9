from __future__ import annotations

import pytest
import torch

from contracts.errors import ConfigError
from models.training.device import resolve


def test_auto_takes_what_there_is() -> None:
    assert resolve("auto").type == ("cuda" if torch.cuda.is_available() else "cpu")
    assert resolve("cpu") == torch.device("cpu")


@pytest.mark.parametrize("name", ["gpu", "meta", "cuda:99"])
def test_a_device_that_is_not_there_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="use 'auto'"):
        resolve(name)
