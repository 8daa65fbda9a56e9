"""What `sluice tune` searches: for each setting that a model reads, bounds that fit the number of training rows.

Every range holds the configured value, so that the settings as they are can be tried like any others. What is turned
off by a 0 stays off.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeVar, cast

from optuna.trial import BaseTrial

from contracts.config.training import Train
from contracts.errors import ConfigError
from contracts.nearest import did_you_mean
from contracts.summaries.train import SettingValue

SMALL, LARGE = 20_000, 1_000_000  # training rows
SHAPES = (("32", "64", "64-32", "128-64", "256-128"), ("64-32", "128-64", "256-128", "512-256", "400-400-400"),
          ("128-64", "256-128", "512-256", "512-256-128", "1024-512-256"))  # small, medium and large windows
DIMS = ((4, 8, 16), (8, 16, 32), (8, 16, 32, 64))
BATCHES, LEAST_BATCH, MOST_BATCH, LEAST_UPDATES = (0.25, 0.5, 1, 2, 4), 32, 16_384, 20
DIGITS = 3  # of a number that is written down

_LINEAR = ("learning_rate", "batch_size", "embedding_l2")
_DEEP = (*_LINEAR, "weight_decay", "embedding_dim", "hidden", "dropout", "numbers")
_CROSSED = (*_DEEP, "cross_layers", "cross_rank", "cross_structure")
READ_BY = {
    "logistic_regression": (*_LINEAR, "numbers"),
    "factorisation_machine": (*_LINEAR, "embedding_dim", "numbers"),
    "dnn": _DEEP,
    "dcn_v2": _CROSSED,
    "gdcn": _CROSSED,
    "deep_fm": _DEEP,
    "final_mlp": _DEEP,
    "final_net": _DEEP,
    "wukong": (*_DEEP, "wukong_layers", "wukong_vectors"),
    "fives": (*_DEEP, "edge_layers"),
    "din": _DEEP,
    "din_sequence": _DEEP,
}


class Range(NamedTuple):
    """Numbers from `low` to `high`, by their logarithm where that is wanted."""

    low: float
    high: float
    by_logarithm: bool = False


class Choice(NamedTuple):
    """One of the options, as Optuna keeps them: widths of layers as text."""

    options: tuple[int | str, ...]


Space = dict[str, Range | Choice]
Option = TypeVar("Option", bound=int | str)


def check_models(names: Sequence[str]) -> None:
    """Raises ConfigError unless each of them has settings to search."""
    for name in names:
        if name not in READ_BY:
            raise ConfigError(f"no settings of {name!r} can be searched{did_you_mean(name, READ_BY)}; there are those "
                              f"of {', '.join(READ_BY)}")


def space_of(model: str, settings: Train, rows: int) -> Space:
    """Setting -> bounds, for `rows` training rows."""
    whole = _whole(settings, rows)
    return {name: whole[name] for name in READ_BY[model] if name in whole}


def _whole(settings: Train, rows: int) -> Space:
    size = (rows >= SMALL) + (rows >= LARGE)
    batch, most = settings.batch_rows(rows), max(min(MOST_BATCH, rows // LEAST_UPDATES), LEAST_BATCH)
    batches = [int(batch * factor) for factor in BATCHES if LEAST_BATCH <= batch * factor <= most]
    ranges = {
        "learning_rate": _holding(settings.learning_rate, Range(2e-4, 1e-2, True)),
        "embedding_l2": _holding(settings.embedding_l2, Range(10.0, 1e5, True)),
        "weight_decay": _holding(settings.weight_decay, Range(1e-7, 1e-2, True)),
        "dropout": _holding(settings.dropout, Range(0.0, 0.5)),
    }
    return {
        **{name: bounds for name, bounds in ranges.items() if bounds is not None},
        "batch_size": Choice(_with(batch, batches)),
        "embedding_dim": Choice(_with(settings.embedding_dim, DIMS[size])),
        "hidden": Choice(_with(_shape(settings.hidden), SHAPES[size])),
        "cross_layers": Choice(_with(settings.cross_layers, (1, 2, 3, 4))),
        "cross_rank": Choice(_with(settings.cross_rank, (0, 16, 64))),
        "cross_structure": Choice(("parallel", "stacked")),
        "wukong_layers": Choice(_with(settings.wukong_layers, (1, 2, 3))),
        "wukong_vectors": Choice(_with(settings.wukong_vectors, (4, 8, 16))),
        "edge_layers": Choice(_with(settings.edge_layers, (1, 2, 3))),
        "numbers": Choice(("plain", "piecewise_linear", "periodic")),
    }


def _holding(value: float, bounds: Range) -> Range | None:
    if bounds.by_logarithm and value <= 0:
        return None
    return bounds._replace(low=min(bounds.low, value), high=max(bounds.high, value))


def _with(value: Option, options: Sequence[Option]) -> tuple[Option, ...]:
    return tuple(options) if value in options else (value, *options)


def _shape(hidden: Sequence[int]) -> str:
    return "-".join(map(str, hidden))


def configured(space: Space, settings: Train, rows: int) -> dict[str, int | float | str]:
    """The configured settings as Optuna's parameters."""
    plain = {name: getattr(settings, name) for name in space}
    return plain | {name: _stored(name, settings, rows) for name in ("batch_size", "hidden") if name in space}


def _stored(name: str, settings: Train, rows: int) -> int | str:
    return settings.batch_rows(rows) if name == "batch_size" else _shape(settings.hidden)


def suggest(trial: BaseTrial, space: Space) -> dict[str, SettingValue]:
    """Values of `[train]` that the trial is to have."""
    return read({name: _parameter(trial, name, bounds) for name, bounds in space.items()})


def _parameter(trial: BaseTrial, name: str, bounds: Range | Choice) -> int | float | str:
    if isinstance(bounds, Choice):
        return cast(int | str, trial.suggest_categorical(name, bounds.options))
    return trial.suggest_float(name, bounds.low, bounds.high, log=bounds.by_logarithm)


def read(parameters: Mapping[str, int | float | str]) -> dict[str, SettingValue]:
    """Optuna's parameters as values of `[train]`; numbers to DIGITS digits."""
    return {name: _setting(name, value) for name, value in parameters.items()}


def _setting(name: str, value: int | float | str) -> SettingValue:
    if name == "hidden":
        return tuple(int(width) for width in str(value).split("-") if width)
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


def with_settings(settings: Train, values: Mapping[str, SettingValue]) -> Train:
    """Checked as a configuration is."""
    return Train.model_validate({**settings.model_dump(), **values})
