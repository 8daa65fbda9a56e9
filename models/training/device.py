"""Which device a run computes on."""

from __future__ import annotations

import torch

from contracts.errors import ConfigError


def resolve(name: str) -> torch.device:
    """'auto' takes a GPU where there is one. Raises ConfigError for an unknown device, or one this machine lacks."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise ConfigError(f"train.device is {name!r}; use 'auto', 'cpu' or 'cuda'") from None
    if device.type not in ("cpu", "cuda"):
        raise ConfigError(f"train.device is {name!r}; use 'auto', 'cpu' or 'cuda'")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise ConfigError(f"train.device is {name!r}, this machine has {torch.cuda.device_count()} GPUs; use 'auto'")
    return device
