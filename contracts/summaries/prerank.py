"""OUT/prerank/summary.json: the frontier of recall against price, the point chosen, and what it is compared with.

`cost` and `price` are as in models/preranking/sweep.py. `us_per_1000` (microseconds per 1,000 candidates) and
`funnel_ms` are measured on the server's code after the choice and never decide it.
"""

from __future__ import annotations

from contracts.features.field_costs import ItemSide
from contracts.summaries.summary import Record, Summary


class FrontierPoint(Record):
    """One set of fields, fine-tuned, on requests of the validation window. `reg_scale` None: every field; `delta` of
    each field as the gates left it."""

    reg_scale: float | None = None
    cost: float
    price: float
    kept: tuple[str, ...]
    fields_kept: int
    recall: float
    recall_error: float
    hit_rate: float | None = None
    auc: float
    delta: dict[str, float]
    chosen: bool
    us_per_1000: float | None = None


class DroppedField(Record):
    """`recall` is the change without the field, `error` the standard error of that over requests; `share` the field's
    part of the price of all fields, `unit` what that is in."""

    field: str
    recall: float
    error: float
    share: float
    unit: str

    @property
    def sentence(self) -> str:
        """Why the field went."""
        why = "no loss beyond chance" if -self.recall <= 2.0 * self.error else "what it adds is not worth its cost"
        return f"{self.field}: {self.recall:+.4f} recall, {-self.share:+.1%} {self.unit}; {why}"


class PreRankerFigures(Record):
    """One way of pre-ranking on requests of the test window. An auction weighs calibrated probabilities with bids;
    `..._without_bids` leave them out. `auc` on all test rows."""

    recall: float
    recall_error: float
    hit_rate: float | None = None
    recall_without_bids: float
    hit_rate_without_bids: float | None = None
    auc: float
    us_per_1000: float | None = None
    funnel_ms: float | None = None


class PreRankChoice(Record):
    """What models/ finds: everything of the summary but times, digest and cost file."""

    kind: str
    item_side: ItemSide
    seed: int
    fields_kept: int
    fields_all: int
    kept: tuple[str, ...]
    cost: float
    price: float
    costs: dict[str, float]
    frontier: tuple[FrontierPoint, ...]
    dropped: tuple[DroppedField, ...]
    words: tuple[str, ...]
    fscd: PreRankerFigures
    dot_product: PreRankerFigures
    full_ranker: PreRankerFigures


class PrerankSummary(PreRankChoice, Summary):
    """`digest` of what the choice depends on; `cost_file` is the name of the measured costs, None with configured
    ones."""

    digest: str
    cost_file: str | None = None
    seconds: float
