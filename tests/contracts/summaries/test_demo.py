"""What a demo adds to a run keeps the keys of its file."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from contracts.summaries.demo import HourSlice, SlateEvaluation, SlateShares, StageLosses

SHARES = SlateShares(random=0.1, popularity=0.5, funnel=0.9)


def test_slates_are_told_by_kind_with_the_loss_of_each_stage() -> None:
    losses = StageLosses(retrieve=0.03, prerank=0.0, rank=0.1, rerank=0.0)
    said = SlateEvaluation(clicks=SHARES, value=SHARES, loss=losses).plain()
    assert said == {"clicks": dict(SHARES), "value": dict(SHARES), "loss": dict(losses)}


def test_a_policy_that_nobody_knows_is_refused() -> None:
    with pytest.raises(ValidationError, match="oracle"):
        SlateShares.model_validate({**dict(SHARES), "oracle": 1.0})


def test_a_share_that_nobody_asked_for_is_left_out_of_a_slice() -> None:
    assert HourSlice(minute=20, value=0.5, lost=0.0).plain() == {"minute": 20, "value": 0.5, "lost": 0.0}
    assert HourSlice.model_validate({"minute": 20, "lost": 1.5}).clicks is None
