"""What server and clients of one setting make of the public files, each for itself and all alike.

configuration and spec ▶ row space ▶ networks, whose weights the configured seed draws ▶ plan
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch

from contracts.config.config import Config
from contracts.features import vocabulary
from federated.clients import client_files
from federated.clients.networks import FederatedNetworks
from federated.clients.row_names import row_names
from federated.clients.row_space import RowSpace
from federated.protocol.plan import Plan
from federated.rounds.score_histograms import histogram_plan
from federated.rounds.settings import COUNTING, plan_of


@dataclass(frozen=True)
class PublicSetup:
    """`networks` hold the weights that a run starts from; what values rows stand for is in `folder`, as prepared."""

    setting: str
    config: Config
    space: RowSpace
    networks: FederatedNetworks
    plan: Plan
    folder: Path

    @cached_property
    def names(self) -> np.ndarray:
        """uint64 per private row: what answers about it are kept by."""
        return row_names(self.space, vocabulary.read_all(client_files.public(self.folder)))


def public_setup(folder: Path, setting: str, config: Config | None = None) -> PublicSetup:
    """Of the setting, or of a round that counts (COUNTING), in a prepared folder; `config` in place of the one there.
    Raises DataError where nothing was prepared, ConfigError on a setting that does not fit."""
    prepared, spec = client_files.read_public(folder)
    config = config or prepared
    identities = client_files.identities(folder)
    space = RowSpace(spec, config.federated.public_up_to)
    torch.manual_seed(config.seed)
    networks = FederatedNetworks(spec, config)
    plan = (histogram_plan(setting, config, spec, networks, identities) if setting in COUNTING
            else plan_of(setting, config, space, networks, identities))
    return PublicSetup(setting, config, space, networks, plan, folder)
