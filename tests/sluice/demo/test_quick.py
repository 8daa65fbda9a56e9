from __future__ import annotations

from sluice.demo.demo import demo_config
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
