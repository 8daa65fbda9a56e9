"""Draws, for every positive, items that the user could have taken at that moment and did not.

A positive at t is an example when its item was there before t and, unless takes repeat, the user had not taken it yet.
Every row drawn for it is an independent draw from q of pipelines/negatives/catalogue.py among the items that are

    there at t,  and not taken by the user at or before t      (where takes repeat: not taken by the user at t itself)

by counting hashes: attempt a of row k of positive r takes ticket floor(u tickets(t)), u = mix(seed, r, k, a) in [0, 1),
and the first attempt that is allowed is kept. So what is drawn depends on the seed, the positive's own hash and what
was there before it, and on nothing of how rows lie on machines. For each row, of item i,

    draws = per_positive q_i(t) / (1 - Q),     Q = what of q is on items that the user may not get

is how many of the rows drawn for the positive are expected to be i: the log odds of a model trained on the rows are
those of i being the item taken at t, less ln(draws). With power 0, Q is exact; else an item counts in Q with the share
of the tickets that it had when the user took it.

A share s of the rows is drawn evenly from the candidates C that a retrieval has for the positive
(pipelines/negatives/candidates.py), which are of the allowed items; none where C is empty. Then

    draws = per_positive ((1 - s) q_i(t) / (1 - Q) + s [i in C] / |C|)

where a positive is in C when it was retrieved itself. The first term is never 0, so that what the retrieval does not
find has a rate to undo, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import BooleanType, DoubleType, IntegerType, LongType, StringType, StructField, StructType

from contracts.artifacts import DRAWS, ITEM, ROW, USER
from pipelines.engine.key_batches import per_key
from pipelines.engine.step import step
from pipelines.features.prefix_sums import PrefixSums
from pipelines.negatives.candidates import Candidates, Retrieval
from pipelines.negatives.catalogue import Catalogue
from pipelines.negatives.neighbours import Neighbours
from pipelines.negatives.takes import Taken, Takes
from pipelines.windows.publish_clock import AT, ENTER

PICK, WANTED = "_pick", "_wanted"  # 0: the positive; 1, 2, ...: drawn for it; below 0: no example, and why not
NEWCOMER, REPEAT, EXHAUSTED = -1, -2, -3
RETRIEVED = "_retrieved"  # drawn from the candidates
WHOLE = 2**40  # a share of 1 in whole numbers
ATTEMPTS = 32  # then what is left to the user is looked up
SOURCE, CANDIDATE = ATTEMPTS + 1, ATTEMPTS + 2  # hashed where an attempt's number is
AT_ONCE = 2**14  # positives, of up to 200 candidates each
SCHEMA = StructType([
    StructField(ROW, LongType()), StructField(PICK, IntegerType()), StructField(ITEM, StringType()),
    StructField(DRAWS, DoubleType()), StructField(RETRIEVED, BooleanType()),
])


@dataclass(frozen=True)
class Drawing:
    """How rows are drawn: `power` as the catalogue was made with it; `candidates` is the share of them, of which
    `folder` has the neighbours where it is above 0."""

    folder: Path
    seed: int
    per_positive: int
    power: float
    repeat: bool
    candidates: float = 0.0

    def __call__(self, table: pa.Table, group: np.ndarray) -> pa.Table:
        """ROW, PICK, ITEM, DRAWS and RETRIEVED of the wanted rows among all takes of some users."""
        neighbours = Neighbours.read(self.folder) if self.candidates else None
        return draw(table, group, Catalogue.read(self.folder), self, neighbours)


@step(needs={ROW: "bigint", USER: "string", ITEM: "string", AT: "bigint", ENTER: "bigint", WANTED: "boolean"},
      gives={PICK: "int"})
def picks(takes: DataFrame, drawing: Drawing) -> DataFrame:
    """For each wanted take itself and what was drawn for it, or why it is no example; `takes` are all there are."""
    return per_key(takes.select(ROW, USER, ITEM, AT, ENTER, WANTED), [USER], drawing, SCHEMA)


def draw(
    table: pa.Table, group: np.ndarray, catalogue: Catalogue, drawing: Drawing, neighbours: Neighbours | None = None
) -> pa.Table:
    """As `picks`, of a table with the columns of its takes; `group` numbers the users. `neighbours`: where a share of
    the rows is drawn from candidates."""
    takes = Takes.read(table, group, catalogue.names, drawing.repeat)
    taken = Taken(takes, len(catalogue.names))
    wanted = table.column(WANTED).to_numpy()
    new = catalogue.first[takes.item] > takes.at
    usable = np.flatnonzero(wanted & taken.first & ~new)
    free = _free(takes, taken, catalogue, drawing.power)
    retrieval = Retrieval(takes, taken, neighbours) if neighbours else None
    drawn = [
        _drawn(takes.of(part), free[part], taken, catalogue, drawing,
               retrieval.candidates(part) if retrieval else Candidates.none(len(part)))
        for part in np.split(usable, range(AT_ONCE, len(usable), AT_ONCE))]
    left_out = [(np.flatnonzero(wanted & ~taken.first), REPEAT), (np.flatnonzero(wanted & taken.first & new), NEWCOMER)]
    parts = [*drawn, *(_table(catalogue, takes.row[rows], pick, takes.item[rows], 0.0) for rows, pick in left_out)]
    return pa.concat_tables(parts).combine_chunks()


def _free(takes: Takes, taken: Taken, catalogue: Catalogue, power: float) -> np.ndarray:
    """Per take, what share of the tickets at its moment is of items that its holder has not; sums are of integers, so
    that they do not depend on which users share a task."""
    firsts = takes.of(taken.first)
    since = np.maximum(firsts.at, catalogue.first[firsts.item])
    tickets, then = catalogue.tickets(takes.at), catalogue.tickets(since)
    sums = PrefixSums(firsts.holder, since, takes.holder, takes.at)
    if power == 0:
        return 1.0 - sums.of(np.ones(len(since), np.int64)) / np.maximum(tickets, 1)
    shares = catalogue.tickets_of(firsts.item, then) / np.maximum(then, 1)
    return 1.0 - sums.of(np.rint(shares * WHOLE).astype(np.int64)) / WHOLE


def _drawn(
    takes: Takes, free: np.ndarray, taken: Taken, catalogue: Catalogue, drawing: Drawing, candidates: Candidates
) -> pa.Table:
    """The positives `takes`, whose items were there, with the rows drawn for them; exhausted ones with none."""
    count = drawing.per_positive
    of = np.repeat(np.arange(len(takes.row)), count)
    picked = np.tile(np.arange(1, count + 1), len(takes.row))
    share = np.where(candidates.sizes > 0, drawing.candidates, 0.0)
    retrieved = uniform(drawing.seed, takes.row[of], picked, SOURCE) < share[of]
    items = np.full(len(of), -1, np.int64)
    items[retrieved] = candidates.at(
        of[retrieved], uniform(drawing.seed, takes.row[of[retrieved]], picked[retrieved], CANDIDATE))
    _from_catalogue(items, takes, of, picked, taken, catalogue, drawing)
    empty = np.bincount(of, weights=items < 0, minlength=len(takes.row)) > 0
    kept, rows = np.flatnonzero(~empty), ~empty[of]
    rate = _Rate(takes, free, catalogue, candidates, count, share)
    own, among = candidates.own[kept], candidates.among(of[rows], items[rows], len(catalogue.names))
    return pa.concat_tables([
        _table(catalogue, takes.row[kept], 0, takes.item[kept], rate.of(kept, takes.item[kept], own)),
        _table(catalogue, takes.row[of[rows]], picked[rows], items[rows], rate.of(of[rows], items[rows], among),
               retrieved[rows]),
        _table(catalogue, takes.row[empty], EXHAUSTED, takes.item[empty], 0.0),
    ])


def _from_catalogue(
    items: np.ndarray, takes: Takes, of: np.ndarray, picked: np.ndarray, taken: Taken, catalogue: Catalogue,
    drawing: Drawing,
) -> None:
    """Fills in those that are -1, of the positives `of`; they stay so where there is nothing for the user."""
    tickets = catalogue.tickets(takes.at)
    for attempt in range(ATTEMPTS):
        open_ = np.flatnonzero(items < 0)
        if not len(open_):
            break
        by = of[open_]
        ticket = (uniform(drawing.seed, takes.row[by], picked[open_], attempt) * tickets[by]).astype(np.int64)
        found = catalogue.items[ticket]
        items[open_] = np.where(taken.has(takes.holder[by], found, takes.at[by]), -1, found)
    for place in np.flatnonzero(items < 0).tolist():
        items[place] = _looked_up(takes.of(of[place : place + 1]), int(picked[place]), taken, catalogue, drawing)


class _Rate:
    """How many of the rows drawn for a positive are expected to be of an item."""

    def __init__(
        self, takes: Takes, free: np.ndarray, catalogue: Catalogue, candidates: Candidates, count: int,
        share: np.ndarray,
    ) -> None:
        self.catalogue, self.tickets = catalogue, catalogue.tickets(takes.at)
        smallest = 1.0 / np.maximum(self.tickets, 1)
        self.of_ticket = count * (1.0 - share) / (self.tickets * np.maximum(free, smallest))
        self.of_candidate = count * share / np.maximum(candidates.sizes, 1)

    def of(self, positive: np.ndarray, item: np.ndarray, candidate: np.ndarray) -> np.ndarray:
        """`candidate`: whether it is one of the positive's."""
        tickets = self.catalogue.tickets_of(item, self.tickets[positive])
        return self.of_ticket[positive] * tickets + self.of_candidate[positive] * candidate


def _looked_up(take: Takes, pick: int, taken: Taken, catalogue: Catalogue, drawing: Drawing) -> int:
    """One more attempt, among the tickets that the one user may get; -1 where there is none."""
    there = np.asarray(catalogue.items[: catalogue.tickets(take.at)[0]])
    free = there[~taken.has(np.repeat(take.holder, len(there)), there, np.repeat(take.at, len(there)))]
    if not len(free):
        return -1
    chance = uniform(drawing.seed, take.row, np.array([pick]), ATTEMPTS)[0]
    return int(free[int(chance * len(free))])


def _table(
    catalogue: Catalogue, rows: np.ndarray, pick: np.ndarray | int, items: np.ndarray, draws: np.ndarray | float,
    retrieved: np.ndarray | bool = False,
) -> pa.Table:
    return pa.table({
        ROW: pa.array(rows, pa.int64()), PICK: pa.array(np.broadcast_to(pick, len(rows)), pa.int32()),
        ITEM: catalogue.names.take(pa.array(items)), DRAWS: pa.array(np.broadcast_to(draws, len(rows)), pa.float64()),
        RETRIEVED: pa.array(np.broadcast_to(retrieved, len(rows)), pa.bool_()),
    })


def uniform(seed: int, rows: np.ndarray, picks: np.ndarray, attempt: int) -> np.ndarray:
    """float64 in [0, 1): 53 bits of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014) over the four numbers."""
    with np.errstate(over="ignore"):
        state = _mixed(rows.astype(np.int64).view(np.uint64) + np.uint64(seed % 2**64))
        state = _mixed(state + picks.astype(np.uint64))
        state = _mixed(state + np.uint64(attempt))
    return (state >> np.uint64(11)) * 2.0**-53


def _mixed(state: np.ndarray) -> np.ndarray:
    state = state + np.uint64(0x9E3779B97F4A7C15)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state ^ (state >> np.uint64(31))
