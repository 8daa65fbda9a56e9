"""What a caller asks of the funnel and what it answers, in plain Python; the gRPC layer translates from and to it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, Protocol

from contracts.features.encoding import Encoded
from contracts.features.event_features import NOTHING_TOLD, ToldEvents
from contracts.features.feature_spec import FeatureField

MORE_COMES = "more comes than can be answered whole"  # why a stage was left out
Scalar = str | int | float | bool
ContextValue = Scalar | tuple[Scalar, ...]  # several of a multi-valued field


def as_column(field: FeatureField, value: ContextValue | None) -> object:
    """What the encoder takes: a list of a field with several values, though the request gives but one."""
    if field.kind != "multi_valued" or value is None:
        return value
    return list(value) if isinstance(value, tuple) else [value]


class StageStatus(StrEnum):
    """Degraded: cut short or done more simply than configured; skipped: not done at all. `cause` says why."""

    COMPLETE = "complete"
    DEGRADED = "degraded"
    SKIPPED = "skipped"


class Fallback(StrEnum):
    """What stands in for a stage that had no time, or failed.

    popular           for retrieval: the most popular of the items that the filters admit
    two_tower_score   for pre-ranking: the inner product that retrieval has computed
    previous_order    for ranking: the order and the probabilities of the stage before
    organic_order     for re-ranking: by probability alone
    without_reasons   for explaining
    bundle_row        for the user: what the bundle's table knows
    """

    NONE = "none"
    POPULAR = "popular"
    TWO_TOWER_SCORE = "two_tower_score"
    PREVIOUS_ORDER = "previous_order"
    ORGANIC_ORDER = "organic_order"
    WITHOUT_REASONS = "without_reasons"
    BUNDLE_ROW = "bundle_row"


@dataclass(slots=True)
class StageReport:
    """`cause` says why a stage is not complete, `fallback` what stood in for it, `age` in seconds how old what
    it read is."""

    name: str
    candidates_in: int
    candidates_out: int
    microseconds: int
    status: StageStatus = StageStatus.COMPLETE
    cause: str = ""
    fallback: Fallback = Fallback.NONE
    age: float | None = None


@dataclass(frozen=True, eq=False)
class StoredUser:
    """A user's row of an online store, whole in place of the bundle's: `inputs` [1, ...] of the user's side, `recent`
    item keys, newest first, `told` what is told of them."""

    inputs: Encoded
    recent: tuple[str, ...]
    told: ToldEvents = NOTHING_TOLD


@dataclass(frozen=True)
class FreshUser:
    """What is known beyond the bundle's tables: `stored` in place of their row; `recent` item keys, newest first,
    before the row's, `told` what is told of them; `values` of user fields by name, in place of the row's. `overlap`:
    the items clicked until the tables were published, newest first, and the place in `recent` of those that were
    learned later, -1 of others; the row may have these, too. `report` says how that was come by."""

    report: StageReport
    recent: tuple[str, ...] = ()
    values: Mapping[str, ContextValue] = field(default_factory=dict)
    stored: StoredUser | None = None
    told: ToldEvents = NOTHING_TOLD
    overlap: tuple[tuple[str, int], ...] = ()


class Users(Protocol):
    """Who knows users beyond the bundle. `read` never raises, and ends within `left` seconds; `who` names the caller,
    where reading takes long."""

    async def read(self, user: str, left: float = math.inf, who: Callable[[], str] = str) -> FreshUser: ...


@dataclass(frozen=True)
class RankQuery:
    """`candidates` replaces retrieval, and none in it is an error; `filters` keeps items whose field has one of the
    values, `excluded` those whose field has none of them, `ranges` those whose number lies within, bounds included;
    `recent_items` (newest first) overrides the stored history; `limit` 0 is an error, not a default. Without
    `partial_ok` a request that cannot be answered by every stage in time, fails. `features` and `bids` by item: raw
    values by field, and what a click pays, of candidates that the bundle does not know. `shown` is not shown again.
    `fresh` is what an online store knows of the user; `placement` is the slate's name within a page, `told`
    what is told of the recent items."""

    user: str
    limit: int
    context: Mapping[str, ContextValue] = field(default_factory=dict)
    candidates: tuple[str, ...] | None = None
    filters: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    recent_items: tuple[str, ...] | None = None
    rerank: bool = True
    explain: bool = False
    partial_ok: bool = True
    features: Mapping[str, Mapping[str, ContextValue]] = field(default_factory=dict)
    bids: Mapping[str, float] = field(default_factory=dict)
    shown: tuple[str, ...] = ()
    fresh: FreshUser | None = None
    excluded: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    placement: str = ""
    told: ToldEvents = NOTHING_TOLD


@dataclass(frozen=True)
class PageQuery:
    """Several slates for one requester, by the names of their placements and in the order in which they choose."""

    names: tuple[str, ...]
    queries: tuple[RankQuery, ...]


@dataclass(frozen=True)
class ScoreQuery:
    """`items` to be scored, in the order in which they are answered; `features` by item: raw values by field, for those
    that the bundle does not know; the rest as in RankQuery."""

    user: str
    items: tuple[str, ...]
    context: Mapping[str, ContextValue] = field(default_factory=dict)
    features: Mapping[str, Mapping[str, ContextValue]] = field(default_factory=dict)
    recent_items: tuple[str, ...] | None = None
    fresh: FreshUser | None = None
    told: ToldEvents = NOTHING_TOLD


@dataclass
class ScoreAnswer:
    """`probabilities` in the order of the items, NaN for the `unknown` ones."""

    probabilities: list[float]
    unknown: list[str]
    bundle_version: str
    known_user: bool


@dataclass(slots=True)
class Reason:
    """How far the logit falls when this field is set to its default."""

    field: str
    logit_change: float


class Sold(NamedTuple):
    """An item's place in an auction: `bid` and `price` per click. The price is what keeps the place against `runner_up`
    (empty: against the reserve), whose eCPM is `to_beat`: min(bid, to_beat / (1000 x probability))."""

    bid: float
    price: float
    runner_up: str
    to_beat: float


@dataclass(kw_only=True, slots=True)
class RankedItem:
    """`sold` where there is an auction; `stage_scores` by stage name."""

    item: str
    probability: float
    score: float
    sold: Sold | None
    channel: str
    stage_scores: dict[str, float]
    reasons: list[Reason]

    @property
    def price(self) -> float | None:
        """Per click, where there is an auction."""
        return self.sold.price if self.sold else None


@dataclass(slots=True)
class RankAnswer:
    """`unknown_candidates` are explicit candidates the bundle does not know; `inputs` [1, ...] is what the funnel read
    of the requester."""

    items: list[RankedItem]
    stages: list[StageReport]
    bundle_version: str
    unknown_candidates: list[str]
    known_user: bool
    inputs: Encoded | None = field(default=None, compare=False, repr=False)

    @property
    def degraded(self) -> bool:
        """Some stage was cut short, failed, or had no time."""
        return any(stage.status is StageStatus.DEGRADED or stage.fallback is not Fallback.NONE
                   for stage in self.stages)


@dataclass
class PageAnswer:
    """A slate per placement, in their order."""

    names: tuple[str, ...]
    slates: list[RankAnswer]


def slates_of(answer: RankAnswer | PageAnswer) -> list[RankAnswer]:
    """All of a page's, or the one."""
    return answer.slates if isinstance(answer, PageAnswer) else [answer]
