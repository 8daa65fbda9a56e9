"""The bundle's networks: built from its settings, filled from its files, ready to score.

Each raises BundleError where the weights are missing or do not fit the settings.
"""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from torch import nn

from contracts.config.stages import Prerank
from contracts.config.training import Train
from contracts.errors import BundleError
from contracts.features.feature_spec import FeatureSpec
from models.inference import ensemble
from models.networks import registry
from models.networks.tower_pre_ranker import PreRanker
from models.networks.two_tower import TwoTower
from models.preranking.fscd import Fscd
from models.training import checkpoint

N = TypeVar("N", bound=nn.Module)


def load_towers(path: Path, spec: FeatureSpec, train: Train) -> TwoTower:
    towers = TwoTower(
        spec, train.embedding_dim, train.tower_hidden, train.tower_dim, train.dropout, train.temperature)
    return _filled(towers, path)


def load_pre_ranker(path: Path, train: Train, prerank: Prerank) -> PreRanker:
    return _filled(PreRanker(train.tower_dim, prerank.hidden), path)


def load_fscd(path: Path, spec: FeatureSpec, prerank: Prerank) -> Fscd:
    return _filled(Fscd(spec, prerank.embedding_dim, prerank.hidden), path)


def load_ranker(path: Path, name: str, spec: FeatureSpec, train: Train) -> nn.Module:
    """One network, or an ensemble of as many as the file holds."""
    members = ensemble.size(checkpoint.names(_existing(path)))
    networks = [registry.build(name, spec, train) for _ in range(members or 1)]
    return _filled(ensemble.Ensemble(networks) if members else networks[0], path)


def _filled(network: N, path: Path) -> N:
    """In evaluation mode, without gradients, its weights mapped from the file: workers share them.

    Raises BundleError when the weights are missing or do not fit.
    """
    checkpoint.load(network, _existing(path), mapped=True)
    return network.eval().requires_grad_(False)


def _existing(path: Path) -> Path:
    if not path.exists():
        raise BundleError(f"no weights at {path}; run `sluice train`, then assemble the bundle again")
    return path
