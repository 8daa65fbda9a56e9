"""Ranking networks by name, the simplest first."""

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
    "logistic_regression": lambda spec, s: LogisticRegression(spec, s.numbers),
    "factorisation_machine": lambda spec, s: FactorisationMachine(spec, s.embedding_dim, s.numbers),
    "dnn": lambda spec, s: Dnn(*_deep(spec, s), s.numbers),
    "dcn_v2": lambda spec, s: DcnV2(*_deep(spec, s), *_crossed(s), s.numbers),
    "din": lambda spec, s: Din(*_deep(spec, s), numbers=s.numbers),
    "gdcn": lambda spec, s: Gdcn(*_deep(spec, s), *_crossed(s), s.numbers),
    "deep_fm": lambda spec, s: DeepFm(*_deep(spec, s), s.numbers),
    "final_mlp": lambda spec, s: FinalMlp(*_deep(spec, s), s.numbers),
    "final_net": lambda spec, s: FinalNet(*_deep(spec, s), s.numbers),
    "wukong": lambda spec, s: Wukong(*_deep(spec, s), s.wukong_layers, s.wukong_vectors, s.numbers),
    "fives": lambda spec, s: Fives(*_deep(spec, s), s.edge_layers, numbers=s.numbers),
    "din_sequence": lambda spec, s: Din(*_deep(spec, s), blocks=1, numbers=s.numbers),
}


def _deep(spec: FeatureSpec, settings: Train) -> tuple[FeatureSpec, int, tuple[int, ...], float]:
    return spec, settings.embedding_dim, settings.hidden, settings.dropout


def _crossed(settings: Train) -> tuple[int, int, bool]:
    return settings.cross_layers, settings.cross_rank, settings.cross_structure == "stacked"


def names() -> tuple[str, ...]:
    """Every ranker that `train.models` may name, the simplest first."""
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
