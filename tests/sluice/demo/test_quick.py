from __future__ import annotations

from datetime import timedelta

import pytest

from sluice.commands.demo_command import Preset
from sluice.demo.demo import PRESETS, demo_config
from sluice.demo.quick import EVENTS, SECTIONS, shortened


def test_the_quick_demo_is_the_demo_with_less_of_everything() -> None:
    whole, quick = demo_config(None), demo_config(None, quick=True)
    assert quick.simulation is not None
    assert quick.simulation.events == EVENTS
    assert (quick.fields, quick.windows, quick.label) == (whole.fields, whole.windows, whole.label)
    changed = {name for name in type(whole).model_fields if getattr(whole, name) != getattr(quick, name)}
    assert changed == SECTIONS.keys()
    assert type(quick).model_validate(quick.model_dump(exclude_unset=True)) == quick
    assert shortened(whole) == quick


def test_events_can_be_more_all_the_same() -> None:
    config = demo_config(60_000, quick=True)
    assert config.simulation is not None
    assert (config.simulation.events, config.simulation.users) == (60_000, SECTIONS["simulation"]["users"])


def test_each_preset_is_a_world_of_its_own() -> None:
    assert {preset.value for preset in Preset} == PRESETS.keys()
    worlds = {preset: demo_config(None, preset=preset) for preset in PRESETS}
    shares = {preset: config.simulation.shares for preset, config in worlds.items() if config.simulation}
    assert shares["tastes"]["personal_taste"] >= 0.5 > 0.1 > shares["standard"]["personal_taste"]


@pytest.mark.parametrize("quick", [True, False])
@pytest.mark.parametrize("preset", PRESETS)
def test_what_is_to_be_served_is_trained(preset: str, quick: bool) -> None:
    train = demo_config(None, quick=quick, preset=preset).train
    assert train.ranker in ("best", *train.models)


@pytest.mark.parametrize("preset", PRESETS)
def test_the_test_window_has_one_day_of_clicks_so_that_one_days_truth_holds(preset: str) -> None:
    config = demo_config(None, preset=preset)
    assert config.simulation is not None
    test = config.windows.test
    assert isinstance(test, tuple)
    last = config.simulation.start + timedelta(days=config.simulation.days)
    assert test[0] + timedelta(days=1) == last - timedelta(seconds=config.embargo)
