"""State dict <-> safetensors. Nothing is pickled, and every tensor must find its place again."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors import safe_open
from torch import Tensor, nn

from contracts.bundle.bundle import load_weights, save_weights
from contracts.errors import BundleError

PRIOR = "prior.logit"


def save(network: nn.Module, path: Path) -> None:
    """Writes every persistent tensor, from whatever device it is on."""
    save_weights(path, {name: tensor.detach().cpu().numpy() for name, tensor in network.state_dict().items()})


def load(network: nn.Module, path: Path, mapped: bool = False) -> None:
    """Raises BundleError when a name or a shape differs from what the network has.

    `mapped` weights are the file's own pages, which all processes of a machine share: for networks that only score.
    Weights from before rankers had a prior of the item have none: it stays 0, as it was for them.
    """
    stored = _mapped(path) if mapped else {name: torch.from_numpy(one) for name, one in load_weights(path).items()}
    expected = network.state_dict()
    stored = {PRIOR: expected[PRIOR], **stored} if PRIOR in expected else stored
    for name in sorted(stored.keys() ^ expected.keys()):
        where = "is missing in" if name in expected else "has no place in the network, but is in"
        raise BundleError(f"{name!r} {where} {path}; the weights belong to other settings: train again")
    for name, tensor in expected.items():
        if stored[name].shape != tensor.shape:
            raise BundleError(
                f"{path}: {name!r} has shape {tuple(stored[name].shape)}, the network needs {tuple(tensor.shape)}; the "
                "weights belong to another feature spec or other settings: train again"
            )
    network.load_state_dict(stored, assign=mapped)


def names(path: Path) -> tuple[str, ...]:
    """Of the tensors, which are not read."""
    with safe_open(path, framework="pt") as file:
        return tuple(file.keys())


def shape(path: Path, name: str) -> tuple[int, ...]:
    """Of one tensor, which is not read."""
    with safe_open(path, framework="pt") as file:
        return tuple(file.get_slice(name).get_shape())


def _mapped(path: Path) -> dict[str, Tensor]:
    with safe_open(path, framework="pt") as file:
        return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - it is no mapping
