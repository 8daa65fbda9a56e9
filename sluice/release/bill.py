"""`sluice bill`: the prices of what was clicked in the response log, summed by who pays: an advertiser, an item.

A click is paid for once, at the price of the answer that showed the item, where it came within `label.clicks.window`.
Sums are exact before they are rounded to a float (math.fsum).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from contracts.config.config import Config
from contracts.errors import ConfigError
from contracts.release.bill import Bill, BillLine
from serving.replay import response_history
from sluice.release import click_log

ITEM = "item"
NOBODY = "(not in the items' table)"


@dataclass(frozen=True)
class Billed:
    """What is billed. `clicks` None: the configured table; `by` "item": each item pays for itself."""

    answers: Path
    since: datetime
    until: datetime
    by: str = ITEM
    clicks: Path | None = None
    data: str | Path | None = None


def bill(config: Config, billed: Billed) -> Bill:
    """Raises ConfigError without clicks or items to go by, DataError without a response log or items to read,
    SchemaError without a column."""
    if config.label.clicks is None:
        raise ConfigError("a bill needs clicks: label.clicks names their table")
    log = response_history.read(billed.answers, billed.since, billed.until)
    shown = response_history.shown(log, billed.until, first_only=False)
    priced = shown.filter(pc.is_valid(shown["price"])).sort_by("time")
    clicks = click_log.read(config, str(billed.clicks or config.path(config.label.clicks, billed.data)))
    hit = click_log.clicked(priced, clicks, config.label.clicks.window)
    paid = _once(priced, hit)
    unpaid = click_log.unpaid(priced, clicks, config.label.clicks.window, billed.since, billed.until)
    payers = _payers(config, billed, priced["item"])
    lines = _lines(payers, priced["price"].to_numpy(), paid)
    return Bill(
        since=billed.since.isoformat(), until=billed.until.isoformat(), by=billed.by, lines=lines,
        amount=math.fsum(priced["price"].to_numpy()[paid]), shown=priced.num_rows, clicks=int(paid.sum()),
        unpriced=shown.num_rows - priced.num_rows, repeated=int(hit.sum() - paid.sum()), early=unpaid.early,
        late=unpaid.late, unknown=unpaid.unknown, lost_calls=sum(log.lost.values()))


def text(found: Bill) -> list[str]:
    """The bill as people read it, the largest amount first."""
    width = max([len(line.payer) for line in found.lines], default=0)
    said = [f"{line.payer:<{width}}  {line.amount:>14.6f}  {line.clicks:>8} clicks of {line.shown} shown"
            for line in found.lines]
    said.append(f"{found.amount:.6f} for {found.clicks} clicks of {found.shown} shown, from {found.since} to "
                f"{found.until}")
    said += [f"{count} {what}" for count, what in (
        (found.unpriced, "shown without a price"), (found.repeated, "clicks on a request id used before, paid once"),
        (found.early, "clicks before their answer, not paid: whose clock is behind the server's?"),
        (found.late, "clicks after the window, not paid"),
        (found.unknown, "clicks on nothing that these answers sold"),
        (found.lost_calls, "calls are lost, and nothing of them is billed")) if count]
    return said


def _once(shown: pa.Table, hit: np.ndarray) -> np.ndarray:
    """bool: of the hits on one item of one request id the first alone."""
    paid, seen = hit.copy(), set[tuple[str, str]]()
    keys = zip(shown["request_id"].to_pylist(), shown["item"].to_pylist(), strict=True)
    for row, key in enumerate(keys):
        if paid[row]:
            paid[row] = key not in seen
            seen.add(key)
    return paid


def _payers(config: Config, billed: Billed, items: pa.ChunkedArray) -> list[str]:
    """Of each shown item."""
    if billed.by == ITEM:
        return [str(item) for item in items.to_pylist()]
    if config.items is None:
        raise ConfigError(f"a bill by {billed.by!r} needs the items' table ([items] of the configuration); --by item "
                          "needs none")
    from pipelines.ingest.item_column import item_column  # an engine, which a bill by item does without

    known = item_column(config, billed.data, billed.by)
    return [str(known.get(item, NOBODY)) for item in items.to_pylist()]


def _lines(payers: list[str], prices: np.ndarray, paid: np.ndarray) -> tuple[BillLine, ...]:
    rows: dict[str, list[int]] = {}
    for row, payer in enumerate(payers):
        rows.setdefault(payer, []).append(row)
    found = []
    for payer, mine in rows.items():
        costs = prices[mine][paid[mine]]
        found.append(BillLine(payer=payer, shown=len(mine), clicks=len(costs), amount=math.fsum(costs)))
    return tuple(sorted(found, key=lambda line: (-line.amount, line.payer)))
