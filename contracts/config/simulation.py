"""The simulated marketplace."""

from __future__ import annotations

from datetime import UTC, datetime

from pydantic import Field

from contracts.config.section import Instant, Section


class Simulation(Section):
    """Settings of the simulated marketplace; see pipelines/marketplace/marketplace.py for their meaning."""

    events: int = Field(500_000, ge=1, description="impressions")
    users: int = Field(20_000, ge=1)
    items: int = Field(5_000, ge=1)
    days: int = Field(14, ge=1)
    start: Instant = datetime(2026, 1, 5, tzinfo=UTC)
    click_rate: float = Field(0.035, gt=0, lt=1, description="aimed at")
    shares: dict[str, float] = Field({}, description="of the logit's variance, by term")
    drift: float = Field(0.0, ge=0, description="radians a day by which tastes turn into others; 0: they stay")
    user_drift: float = Field(0.0, ge=0, description="the same of what each user likes for itself")
