"""What the promotion gate found: challenger against champion on one test window."""

from __future__ import annotations

from typing import Literal

from contracts.config.days import Gate
from contracts.summaries.summary import Record, Summary

FOLDER = "gate"


class Estimate(Record):
    """A value with its standard error and its 95% interval."""

    value: float
    standard_error: float
    low: float
    high: float


class RankingGain(Estimate):
    """Challenger minus champion."""

    figure: Literal["GAUC", "AUC"]


class RecallGain(Estimate):
    """Challenger minus champion, of the shares of `clicks` that the retrieval of each finds."""

    clicks: int
    challenger: float
    champion: float


class MedianMilliseconds(Record):
    """Of processor time, of one request through the whole funnel, each bundle in turn."""

    challenger: float
    champion: float


class GateVerdict(Record):
    """Figures, and one sentence in `reasons` for each thing that speaks against the challenger.

    calibration    predicted over observed clicks of the challenger at the first position
    difference     in ranking quality; `incomparable` says instead why the window cannot tell one
    recall         of retrieval; None where the log has no users, items or times
    champion       None: this is the first version
    """

    challenger: str
    champion: str | None = None
    rows: int | None = None
    settings: Gate | None = None
    calibration: Estimate | None = None
    difference: RankingGain | None = None
    incomparable: str | None = None
    recall: RecallGain | None = None
    milliseconds: MedianMilliseconds | None = None
    reasons: tuple[str, ...] = ()


class GateSummary(GateVerdict, Summary):
    """OUT/gate; `forced`: whoever promoted wanted it in spite of reasons."""

    forced: bool = False


class Promotion(GateSummary):
    """What `sluice promote --json` prints. Not `promoted`: version `number` was champion already."""

    promoted: bool
    number: str
