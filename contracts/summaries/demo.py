"""What `sluice demo` adds to a run: what was served, compared with the simulated marketplace's truth; and what
`sluice demo --fresh` finds: an hour with and without what is told to the server while it serves."""

from __future__ import annotations

from contracts.summaries.summary import Record, Summary


class ServingFigures(Record):
    """Requests over gRPC as the caller saw them; percentiles of milliseconds from sending to answer."""

    requests: int
    errors: int
    p50_ms: float
    p99_ms: float


class SlateShares(Record):
    """What each policy's slates are worth, over the worth of the oracle's."""

    random: float
    popularity: float
    funnel: float


class StageLosses(Record):
    """Share of the oracle's value lost in each stage: the best slate still possible after it against before it."""

    retrieve: float
    prerank: float
    rank: float
    rerank: float


class SlateEvaluation(Record):
    """`clicks`: expected clicks with re-ranking off; `value`: expected bid x probability with the auction on."""

    clicks: SlateShares
    value: SlateShares
    loss: StageLosses


class PreRankSlates(Record):
    """Expected clicks of the slates behind each pre-ranker, over the oracle's; `lost`: what the served one takes from
    the slates of the ranker on everything, as a share of them."""

    fscd: float
    dot_product: float
    full_ranker: float
    lost: float


class BaselineBytes(Record):
    """Of the vectors and heads, of the table of counted pairs, of a table of all pairs."""

    pcf_gnn: int
    table: int
    dense: int


class PairRateEvaluation(Record):
    """Predicted pair rates against the marketplace's true ones, by baseline.

    `zero_bucket_mse`: over pairs never seen together; `auc`: of one ranker with these rates, on the test window.
    """

    zero_bucket_mse: dict[str, float]
    bytes: BaselineBytes
    auc: dict[str, float]


class CrossEvaluation(Record):
    """Found crosses against planted ones, each met by its exact set of fields.

    `incidental`: found crosses whose fields interact through taste, though none was planted; precision = found / kept,
    recall = found / planted; `share_of_oracle` of a logistic regression without and with the crosses.
    """

    planted: int
    found: int
    incidental: int
    precision: float
    recall: float
    share_of_oracle: dict[str, float]


class Share(Record):
    """What the slates are worth over what the best slates are, and its standard error over users."""

    share: float
    standard_error: float


class Lift(Record):
    """In the ranker's logit, with its standard error over users."""

    logit: float
    standard_error: float


class HourSlice(Record):
    """Ten minutes that begin at `minute`; a share is None where nobody asked. `lost`: as in HourRun."""

    minute: int
    clicks: float | None = None
    value: float | None = None
    lost: float


class HourRun(Record):
    """The hour with one kind of news sent to the server.

    clicks        expected clicks of the slates without an auction, over those of the best slates at the same moments
    value         expected bid x click of the slates with one, over that of the best
    clicks_a_visit, best_clicks_a_visit     expected, of the slates without an auction and of the best
    lost          bid x probability of what was shown and could not be had: withdrawn, or sold out
    lost_share    of what the best slates of the same visits are worth
    mood, best_mood          what users are after adds to the logit of what was shown, of the best slates; means
    unavailable, repeated    places spent on such items, and on items that the user had clicked before, of `places`
    clicked       clicks that were drawn
    changes, events          sent
    slowest_seconds          until a batch of changes was seen to be shown
    """

    clicks: Share
    value: Share
    clicks_a_visit: float
    best_clicks_a_visit: float
    lost: float
    lost_share: float
    mood: float
    best_mood: float
    unavailable: int
    repeated: int
    places: int
    clicked: int
    changes: int
    events: int
    slowest_seconds: float
    slices: tuple[HourSlice, ...]


class FreshHourSummary(Summary):
    """`runs` by what was sent: `nothing`, `items` (changes of items), `items_and_events`.

    clicks_gained, value_gained     by later over earlier run, `items` over `nothing` and so on: the difference of their
                                    shares, with the standard error over users of the paired difference
    changes                         of the hour, by kind
    category_lift                   of a category in which the user's latest clicks are, over other categories, against
                                    clicks anywhere (sluice/fresh_demo/category_lift.py)
    mood                            how strong what users are after is in the logit, and moves within the hour
    """

    bundle: str
    ranker: str
    seed: int
    visits: int
    users: int
    items: int
    mood: float
    category_lift: Lift
    changes: dict[str, int]
    runs: dict[str, HourRun]
    clicks_gained: dict[str, Share]
    value_gained: dict[str, Share]
    seconds: float
