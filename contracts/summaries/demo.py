"""What `sluice demo` adds to a run: what was served, compared with the simulated marketplace's truth."""

from __future__ import annotations

from contracts.summaries.summary import Record


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
