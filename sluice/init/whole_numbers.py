"""Whole numbers: codes, quantities, or either? Judged by name, repetition, spacing, digits, and what the label says.

Every sign has a weight, positive for codes. What the label says counts for more than the form where it is no chance;
where it says both, or strong signs contradict each other, or there are none, the column is offered as both.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

import numpy as np

from sluice.init.held_out import Said, said_of

Meaning = Literal["code", "quantity", "both"]
CODE_NAME = re.compile(
    r"(^|_)(id|ids|key|code|zip|postcode|postal|plz|no|ip|app|os|channel|device|browser|model|hash|category|cat|type|"
    r"kind|class|group|segment|region|city|country|state|shop|store|site|page|brand|campaign|slot|sku|dept|department|"
    r"role|title|family|resource|mgr|manager|branch|role_title|carrier|domain|cluster)(_?\d+)?($|_)", re.I)
QUANTITY_NAME = re.compile(
    r"(^|_)(age|price|prices|amount|amt|cost|count|counts|cnt|num|n|nr|qty|quantity|total|sum|avg|mean|min|max|days|day|"
    r"hours|minutes|seconds|secs|duration|length|len|size|weight|height|width|score|rank|balance|income|salary|wage|"
    r"year|years|yr|distance|dist|rate|ratio|percent|pct|gain|loss|points|views|visits|clicks|orders|sales|revenue|"
    r"tenure|delay|lag|time|temperature|population|area|rooms|budget|runtime|votes|likes|followers|times)($|_)", re.I)
FIXED_DIGITS, HASHED_DIGITS, MANY = 5, 11, 200
REPEATS, SPARSE, DENSE, SMOOTH, DOMINANT, ROUNDED = 2.0, 8.0, 1.25, 4.0, 0.25, 0.4
SURE, STRONG = 2, 3  # points


class Judgement(NamedTuple):
    meaning: Meaning
    why: str


class Sign(NamedTuple):
    """`weight` above 0 speaks for codes."""

    weight: int
    text: str


def judge(name: str, values: Sequence[int], label: Sequence[bool] | None) -> Judgement:
    """`values` without missing ones, `label` of the same rows; None where it cannot be read from the sample."""
    signs = [*_name(name), *_form(np.asarray(values, dtype=float))]
    said = said_of(values, label) if label is not None and 0 < sum(label) < len(label) else None
    signs += _label(said)
    score = sum(sign.weight for sign in signs)
    both = said is not None and said.as_category and said.ordered
    both |= max(sign.weight for sign in signs) >= STRONG and min(sign.weight for sign in signs) <= -STRONG
    meaning: Meaning = "both" if both or 0 <= score < SURE else "code" if score > 0 else "quantity"
    return Judgement(meaning, "; ".join(sign.text for sign in signs))


def _name(name: str) -> Iterator[Sign]:
    words = re.sub(r"([a-z])([A-Z])", r"\1_\2", name)
    if CODE_NAME.search(words):
        yield Sign(3, "its name is that of a code")
    elif QUANTITY_NAME.search(words):
        yield Sign(-3, "its name is that of a quantity")


def _form(values: np.ndarray) -> Iterator[Sign]:
    """Repetition with gaps, digits, signs, and whether neighbours are about as frequent as each other."""
    distinct, counts = np.unique(values, return_counts=True)
    grid = float(math.gcd(*(int(value - distinct[0]) for value in distinct)) or 1)
    each, span = len(values) / len(distinct), ((distinct[-1] - distinct[0]) / grid + 1) / len(distinct)
    width = len(str(int(np.abs(distinct).max())))
    far_apart = each >= REPEATS and span >= SPARSE
    smooth = _smoothness(counts) > SMOOTH
    if width >= HASHED_DIGITS:
        yield Sign(4, f"{width} digits, as hashes have")
    if span <= DENSE and grid == 1 and _running(distinct):
        yield Sign(3, f"{len(distinct)} values without gaps, as running numbers have")
    if smooth:
        yield Sign(-2, "neighbouring values are about equally frequent")
    elif far_apart:
        yield Sign(2, f"{len(distinct)} values, {each:.0f} times each, far apart and as frequent as chance has it")
        if width >= FIXED_DIGITS:
            yield Sign(1, f"up to {width} digits")
    if distinct[0] < -1 and not far_apart:
        yield Sign(-3, "some are negative")
    if each < REPEATS:
        yield Sign(-1, f"{len(distinct)} values that hardly recur")
    if max(counts[0], counts[-1]) > DOMINANT * len(values):
        yield Sign(-3, f"{max(counts[0], counts[-1]) / len(values):.0%} have the least or the largest value")
    rounded = width >= 3 and len(distinct) >= 20 and np.mean(distinct % 10 == 0) > ROUNDED
    if grid % 5 == 0 or grid % 12 == 0 or rounded:
        yield Sign(-3, f"multiples of {grid:.0f}" if grid > 1 else "most end with 0")


def _running(distinct: np.ndarray) -> bool:
    """Many, or from a number on where neither ages nor years begin."""
    return len(distinct) >= MANY or (distinct[0] >= 1000 and not 1800 <= distinct[0] <= 2100)


def _smoothness(counts: np.ndarray, draws: int = 30) -> float:
    """How many deviations closer the logarithms of neighbours' counts are than in random order."""
    logs = np.log(counts)
    if len(logs) < 5 or logs.std() == 0:
        return 0.0
    random = np.random.default_rng(0)
    shuffled = [np.abs(np.diff(random.permutation(logs))).mean() for _ in range(draws)]
    return float((np.mean(shuffled) - np.abs(np.diff(logs)).mean()) / max(np.std(shuffled), 1e-12))


def _label(said: Said | None) -> Iterator[Sign]:
    if said is None:
        yield Sign(0, "the sample does not tell the label")
        return
    figures = f"{said.category:.0f} nats of held-out log loss as categories, {said.quantity:.0f} as bins"
    if said.as_category:
        yield Sign(2 if said.ordered else 4, f"{figures}{', and neighbours behave alike' if said.ordered else ''}")
    elif said.as_quantity:
        yield Sign(-4 if said.ordered else -1, figures)
    elif said.ordered:
        yield Sign(-1, f"{figures}, and neighbours behave alike")
    else:
        yield Sign(0, "the label tells no difference")
