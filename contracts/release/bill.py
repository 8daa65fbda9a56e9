"""What the clicks on the server's answers cost, by whoever pays for them."""

from __future__ import annotations

from contracts.summaries.summary import Record


class BillLine(Record):
    """`payer` is a value of the column that the bill goes by; `amount` the sum of the prices of its clicks."""

    payer: str
    shown: int
    clicks: int
    amount: float


class Bill(Record):
    """Answers in [since, until), ISO 8601, `by` a column of the items' table.

    unpriced    items shown without a price: no auction, or none could be held
    repeated    clicked items of a request id that was used before, which are paid for once
    early       clicks before the answer that showed their item: by a clock that is behind the server's
    late        clicks after the window
    unknown     clicks that belong to this stretch, on what no priced answer of it has shown
    lost_calls  calls of which the log knows nothing: whatever they have shown is not billed
    """

    since: str
    until: str
    by: str
    lines: tuple[BillLine, ...]
    amount: float
    shown: int
    clicks: int
    unpriced: int
    repeated: int
    early: int
    late: int
    unknown: int
    lost_calls: int
