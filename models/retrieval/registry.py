"""Retrieval models over interactions by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from contracts.errors import ConfigError
from contracts.nearest import did_you_mean
from models.interactions.retriever import Retriever
from models.retrieval.factorisation import Als, AlsSettings, Bpr, BprSettings
from models.retrieval.item_to_item import Ease, ItemCosine
from models.retrieval.light_gcn import LightGcn, LightGcnSettings
from models.retrieval.mixture import Mixture, MixtureSettings
from models.retrieval.popularity import WEEK, Popularity, RecentPopularity
from models.retrieval.towers import Towers, TowerSettings
from models.sequences.encoder import EncoderSettings
from models.sequences.sequence_retriever import SequenceRetriever, SequenceSettings

Settings = Mapping[str, object]  # as a user wrote them: a model's own, checked by its record


class NoSettings(BaseModel):
    """Of a model that only counts."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class RecentSettings(BaseModel):
    """`days` before the last training action."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    days: float = Field(7.0, gt=0)


class EaseSettings(BaseModel):
    """`l2` in actions."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    l2: float = Field(250.0, gt=0)


def _sequence(block: str) -> SequenceSettings:
    return SequenceSettings(encoder=EncoderSettings.model_validate({"block": block}))


_BUILDERS: dict[str, tuple[BaseModel, Callable[..., Retriever]]] = {
    "popularity": (NoSettings(), lambda s, seed: Popularity()),
    "recent_popularity": (RecentSettings(), lambda s, seed: RecentPopularity(int(s.days / 7 * WEEK))),
    "item_cosine": (NoSettings(), lambda s, seed: ItemCosine()),
    "ease": (EaseSettings(), lambda s, seed: Ease(s.l2)),
    "als": (AlsSettings(), Als),
    "bpr": (BprSettings(), Bpr),
    "light_gcn": (LightGcnSettings(), LightGcn),
    "two_tower": (TowerSettings(), Towers),
    "sasrec": (_sequence("transformer"), SequenceRetriever),
    "esasrec": (_sequence("ligr"), SequenceRetriever),
    "hstu": (_sequence("hstu"), SequenceRetriever),
    "mixed": (MixtureSettings(), lambda s, seed: Mixture(s, seed, build, fixed_rounds)),
}


def names() -> tuple[str, ...]:
    """Every retrieval model over interactions."""
    return tuple(_BUILDERS)


def settings(name: str, changed: Settings | None = None) -> BaseModel:
    """The model's settings, those named in `changed` replaced, records within it key by key.

    Raises ConfigError on an unknown model, an unknown key or a value out of its range.
    """
    if name not in _BUILDERS:
        raise ConfigError(f"no retrieval model is called {name!r}{did_you_mean(name, _BUILDERS)}; there are "
                          f"{', '.join(_BUILDERS)}")
    default = _BUILDERS[name][0]
    try:
        return type(default).model_validate(_merged(default.model_dump(), changed or {}))
    except ValidationError as error:
        wrong = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        raise ConfigError(f"settings of {name}: {wrong}") from error


def _merged(whole: dict[str, object], changed: Settings) -> dict[str, object]:
    both = dict(whole)
    for key, value in changed.items():
        inner = both.get(key)
        both[key] = _merged(inner, value) if isinstance(inner, dict) and isinstance(value, Mapping) else value
    return both


def build(name: str, seed: int, changed: Settings | None = None) -> Retriever:
    """Not yet fitted. Raises ConfigError as `settings` does."""
    chosen = settings(name, changed)
    return _BUILDERS[name][1](chosen, seed)


def fixed_rounds(name: str, changed: Settings | None, rounds: int) -> Settings:
    """`changed` and what else it takes to train for so many epochs without an earlier stop, where the model has any."""
    fields = type(settings(name, changed)).model_fields
    return {**(changed or {}), **{key: rounds for key in ("epochs", "validate_every", "patience") if key in fields}}
