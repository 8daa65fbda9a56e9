"""A head of a client's own: the ranker's last layer, fitted to its own rows once the rounds are done, and kept with it.

    h = argmin  sum of log losses of the client's n rows + pull / 2 |h - h0|^2      h0: the head that all trained

by `steps` of proximal descent from h0, g the gradient of the mean loss, so that whoever has few rows stays near h0:

    h <- (h - rate g + s h0) / (1 + s),     s = rate pull / n

All below stays common (personal layers: Arivazhagan et al., 2019; the pull: Ditto, Li et al., ICML 2021). Nothing is
sent for it and nothing of it leaves the client.

    FOLDER/clients/N/heads/MODEL.safetensors      MODEL: of which model it is a head, by SHA-256
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn

from contracts.atomic_write import durable
from contracts.bundle.bundle import load_weights, save_weights
from contracts.config.config import Config
from contracts.errors import ConfigError
from federated.clients.client_files import client
from federated.clients.networks import FederatedNetworks
from models.examples.batches import Batch
from models.layers.losses import ClickLoss
from models.layers.mlp import Mlp

HEADS, DIGITS = "heads", 16
OUTPUTS = ("cross_output", "fusion", "output")  # of rankers that have more than one part, or no MLP, at their end


@dataclass(frozen=True)
class HeadSettings:
    """`steps` of descent at `rate`; `pull` towards the common head, as the precision of a Gaussian prior on it."""

    steps: int
    rate: float
    pull: float

    @classmethod
    def of(cls, config: Config) -> HeadSettings:
        """Those of `[federated]`."""
        federated = config.federated
        return cls(federated.personal_steps, federated.personal_rate, federated.personal_pull)


def head_of(ranker: nn.Module) -> list[nn.Parameter]:
    """What makes the logit out of the last hidden units: weights and bias. Raises ConfigError where there is none."""
    mlp, bias = getattr(ranker, "mlp", None), getattr(ranker, "bias", None)
    found = list((mlp.rest[-1] if len(mlp.rest) else mlp.first).parameters()) if isinstance(mlp, Mlp) else []
    for name in OUTPUTS:
        part = getattr(ranker, name, None)
        found += part.parameters() if isinstance(part, nn.Module) else []
    found += [bias] if isinstance(bias, nn.Parameter) else []
    if not found:
        raise ConfigError(f"{type(ranker).__name__} has no last layer that a client could have of its own; set "
                          "federated.personal_steps to 0 or take another federated.model")
    return found


def fit(
    networks: FederatedNetworks, own: Batch, settings: HeadSettings, common: Sequence[torch.Tensor] | None = None
) -> None:
    """The networks' ranker has the client's head afterwards; all else, and without rows the head too, is as it was.
    `common`: the head that all trained, where descent goes on from another (None: it is the networks')."""
    rows, head, damped = len(own.label), head_of(networks.ranker), networks.damped()
    if not rows:
        return
    start, loss = common or [each.detach().clone() for each in head], ClickLoss(networks.ranker, networks.bias)
    networks.eval()
    for _ in range(settings.steps):
        total, terms = loss(own)
        for parameter, shared, slope in zip(head, start, torch.autograd.grad(total / terms, head), strict=True):
            rate = settings.rate * damped.get(id(parameter), 1.0)
            strength = rate * settings.pull / rows
            with torch.no_grad():
                parameter.add_(slope, alpha=-rate).add_(shared, alpha=strength).div_(1.0 + strength)


def model_name(networks: FederatedNetworks) -> str:
    """The same for the same weights, rows and dense part."""
    rows, dense = networks.read()
    return hashlib.sha256(rows.tobytes() + dense.tobytes()).hexdigest()[:DIGITS]


def keep(folder: Path, number: int, model: str, networks: FederatedNetworks) -> None:
    """The networks' head, as the client's for the model of that name; it survives a crash."""
    head = {str(place): each.detach().numpy() for place, each in enumerate(head_of(networks.ranker))}
    with durable(_path(folder, number, model)) as draft:
        draft.touch(mode=0o600)
        save_weights(draft, head)


@torch.no_grad()
def put_on(folder: Path, number: int, networks: FederatedNetworks) -> bool:
    """The common model's head gives way to the one that the client keeps for it; False where it keeps none."""
    path = _path(folder, number, model_name(networks))
    if not path.exists():
        return False
    kept = load_weights(path)
    for place, parameter in enumerate(head_of(networks.ranker)):
        parameter.copy_(torch.from_numpy(kept[str(place)]))
    return True


def _path(folder: Path, number: int, model: str) -> Path:
    return client(folder, number) / HEADS / f"{model}.safetensors"
