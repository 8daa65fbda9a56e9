from __future__ import annotations

import optuna
import pytest

from contracts.config.training import Train
from contracts.errors import ConfigError
from models.networks import registry
from models.tuning import search_space
from models.tuning.search_space import Choice, Range

SIZES = (300, 50_000, 5_000_000)


def test_every_network_has_a_space() -> None:
    assert set(search_space.READ_BY) == set(registry.names()) - {"popularity"}


@pytest.mark.parametrize("rows", SIZES)
@pytest.mark.parametrize("model", search_space.READ_BY)
def test_the_configured_settings_are_among_those_that_can_be_tried(model: str, rows: int) -> None:
    odd = Train(learning_rate=0.3, hidden=(17, 5), embedding_dim=3, dropout=0.7, cross_rank=7, batch_size=11)
    for settings in (Train(), odd):
        space = search_space.space_of(model, settings, rows)
        for name, value in search_space.configured(space, settings, rows).items():
            bounds = space[name]
            assert value in bounds.options if isinstance(bounds, Choice) else bounds.low <= value <= bounds.high  # type: ignore[operator]


@pytest.mark.parametrize("rows", SIZES)
def test_whatever_is_drawn_is_a_valid_section(rows: int) -> None:
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=1))
    for model in search_space.READ_BY:
        space = search_space.space_of(model, Train(), rows)
        for _ in range(10):
            values = search_space.suggest(study.ask(), space)
            settings = search_space.with_settings(Train(), values)
            assert {name: getattr(settings, name) for name in values} == values
            most = max(rows // search_space.LEAST_UPDATES, search_space.LEAST_BATCH, Train().batch_rows(rows))
            assert settings.batch_rows(rows) <= most


def test_larger_windows_are_searched_among_larger_networks() -> None:
    def largest(name: str, rows: int) -> int:
        options = search_space.space_of("dnn", Train(hidden=(64,), embedding_dim=8), rows)[name].options  # type: ignore[union-attr]
        return max(int(str(option).split("-")[0]) for option in options)

    for name in ("hidden", "embedding_dim", "batch_size"):
        sizes = [largest(name, rows) for rows in SIZES]
        assert sizes == sorted(sizes)
        assert sizes[0] < sizes[-1]


def test_what_is_turned_off_stays_off() -> None:
    space = search_space.space_of("dnn", Train(embedding_l2=0.0, weight_decay=0.0), 1000)
    assert not {"embedding_l2", "weight_decay"} & space.keys()
    assert "dropout" in search_space.space_of("dnn", Train(dropout=0.0), 1000)


def test_parameters_are_read_back_as_settings() -> None:
    assert search_space.read({"hidden": "64-32", "learning_rate": 0.00123456, "cross_rank": 16}) == {
        "hidden": (64, 32), "learning_rate": 0.00123, "cross_rank": 16}
    assert isinstance(search_space.space_of("dnn", Train(), 1000)["learning_rate"], Range)


@pytest.mark.parametrize(("name", "told"), [("popularity", "no settings of 'popularity'"), ("dcnv2", "'dcn_v2'")])
def test_a_model_without_settings_is_refused(name: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        search_space.check_models(["dnn", name])
