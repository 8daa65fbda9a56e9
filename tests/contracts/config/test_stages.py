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
