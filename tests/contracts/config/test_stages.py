from __future__ import annotations

import pytest
from pydantic import ValidationError

from contracts.config.stages import Prerank, Rerank, Retrieve, Serve


def test_the_defaults_narrow_the_funnel_from_stage_to_stage() -> None:
    retrieve, prerank, serve = Retrieve(), Prerank(), Serve()
    assert retrieve.candidates > prerank.keep > serve.max_limit > serve.default_limit
    assert prerank.keep >= prerank.recall_at
    assert retrieve.two_tower + retrieve.item_to_item + retrieve.popularity >= retrieve.candidates


@pytest.mark.parametrize("penalties", [(1.0, 0.5), (0.5, 0.5), (-1.0, 0.5)])
def test_penalties_rise_from_nothing_or_more(penalties: tuple[float, ...]) -> None:
    with pytest.raises(ValidationError, match="must rise from 0 or more"):
        Prerank(penalties=penalties)


def test_diversity_is_a_share() -> None:
    assert Rerank(diversity=1.0).kind == "auto"
    with pytest.raises(ValidationError, match="diversity"):
        Rerank(diversity=1.5)


def test_a_call_has_its_own_time_or_the_servers_and_never_more_than_the_longest() -> None:
    serve = Serve(deadline_ms=100, max_deadline_ms=5000)
    assert [serve.seconds(left) for left in (None, 0.01, 2.0, 60.0)] == [0.1, 0.01, 2.0, 5.0]
    assert Serve(deadline_ms=100, max_deadline_ms=50).seconds(None) == 0.05


def test_a_channel_that_does_not_exist_is_refused_with_the_nearest() -> None:
    with pytest.raises(ValidationError, match=r"no channel is called 'sasrek'.*sasrec"):
        Retrieve.model_validate({"channels": {"sasrek": {}}})


def test_open_quotas_are_filled_and_given_ones_stay() -> None:
    channels = {"sasrec": {}, "hstu": {"quota": 5}}
    retrieve = Retrieve.model_validate({"candidates": 90, "two_tower": 7, "channels": channels})
    assert retrieve.open_quotas == ("two_tower", "item_to_item", "sasrec")
    chosen = retrieve.with_quotas({"two_tower": 50, "sasrec": 30})
    assert (chosen.two_tower, chosen.item_to_item) == (50, 22)  # an equal share of the candidates
    assert {name: channel.quota for name, channel in chosen.channels.items()} == {"sasrec": 30, "hstu": 5}


def test_quotas_are_as_configured_where_every_channel_has_one() -> None:
    retrieve = Retrieve.model_validate({"two_tower": 7, "channels": {"hstu": {"quota": 5}}})
    assert retrieve.with_quotas({"two_tower": 50}) == retrieve


def test_events_are_columns_and_the_time_for_encoders_alone() -> None:
    told = Retrieve.model_validate({"events": ["time", "rating"], "channels": {"sasrec": {}}})
    assert (told.event_times, told.event_columns) == (True, ("rating",))
    with pytest.raises(ValidationError, match=r"none of sasrec, esasrec, hstu is in retrieve\.channels"):
        Retrieve.model_validate({"events": ["time"], "channels": {"ease": {}}})
    with pytest.raises(ValidationError, match="'rating' is named twice"):
        Retrieve.model_validate({"events": ["rating", "rating"], "channels": {"sasrec": {}}})
