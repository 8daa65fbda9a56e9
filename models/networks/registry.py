"""Ranking networks by name."""

from __future__ import annotations

from collections.abc import Callable

from torch import nn

from contracts.config.training import NEED_HIDDEN, Train, no_hidden
from contracts.errors import ConfigError
from contracts.features.feature_spec import FeatureSpec
from contracts.nearest import did_you_mean
from models.networks.dcn_v2 import DcnV2, Gdcn
from models.networks.deep_fm import DeepFm
from models.networks.din import Din
from models.networks.dnn import Dnn
from models.networks.factorisation_machine import FactorisationMachine
from models.networks.final_mlp import FinalMlp
from models.networks.final_net import FinalNet
from models.networks.fives import Fives
from models.networks.logistic_regression import LogisticRegression
from models.networks.popularity import Popularity
from models.networks.wukong import Wukong

_BUILDERS: dict[str, Callable[[FeatureSpec, Train], nn.Module]] = {
    "popularity": lambda spec, _: Popularity(spec),
    "logistic_regression": lambda spec, _: LogisticRegression(spec),
    "factorisation_machine": lambda spec, s: FactorisationMachine(spec, s.embedding_dim),
    "dnn": lambda spec, s: Dnn(spec, s.embedding_dim, s.hidden, s.dropout),
    "dcn_v2": lambda spec, s: DcnV2(spec, s.embedding_dim, s.hidden, s.dropout, s.cross_layers, s.cross_rank),
    "gdcn": lambda spec, s: Gdcn(spec, s.embedding_dim, s.hidden, s.dropout, s.cross_layers, s.cross_rank),
    "deep_fm": lambda spec, s: DeepFm(spec, s.embedding_dim, s.hidden, s.dropout),
    "final_mlp": lambda spec, s: FinalMlp(spec, s.embedding_dim, s.hidden, s.dropout),
    "final_net": lambda spec, s: FinalNet(spec, s.embedding_dim, s.hidden, s.dropout),
    "wukong": lambda spec, s: Wukong(spec, s.embedding_dim, s.hidden, s.dropout, s.wukong_layers, s.wukong_vectors),
    "fives": lambda spec, s: Fives(spec, s.embedding_dim, s.hidden, s.dropout, s.edge_layers),
    "din": lambda spec, s: Din(spec, s.embedding_dim, s.hidden, s.dropout),
    "din_sequence": lambda spec, s: Din(spec, s.embedding_dim, s.hidden, s.dropout, blocks=1),
}


def names() -> tuple[str, ...]:
    """Every ranker that `train.models` may name."""
    return tuple(_BUILDERS)


def build(name: str, spec: FeatureSpec, settings: Train) -> nn.Module:
    """Fresh weights come from torch's global generator: seed it first.

    Raises ConfigError on an unknown name, and where the network needs a hidden layer and has none.
    """
    if name not in _BUILDERS:
        raise ConfigError(
            f"no model is called {name!r}{did_you_mean(name, _BUILDERS)}; there are {', '.join(_BUILDERS)}"
        )
    if name in NEED_HIDDEN and not settings.hidden:
        raise ConfigError(no_hidden(name))
    return _BUILDERS[name](spec, settings)
