"""What simulating the marketplace made."""

from __future__ import annotations

from contracts.summaries.summary import Record


class SimulatedLog(Record):
    """`rows` by table, impressions with those that were delivered twice; `click_rate` per event; `shares` of the
    logit's variance by term, as declared; `planted`, `incidental`: fields of the true crosses, meant or a by-product.
    """

    seed: int
    rows: dict[str, int]
    events: int
    duplicate_rows: int
    click_rate: float
    shares: dict[str, float]
    planted: tuple[tuple[str, ...], ...]
    incidental: tuple[tuple[str, ...], ...]
    seconds: float
    events_per_minute: float
