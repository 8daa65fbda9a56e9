"""Whether whole numbers are names of things (roles, apps, shops) and not amounts, told by the column's name or values.

Amounts that repeat lie close together, or are rounded. Values that recur although they leave most of their range empty,
and that end in any digit, are names: by chance alone, a smooth density that fills a share f of the range shows each of
its values -ln(1 - f) / f times, 1.1 at f = 0.2.
"""

from __future__ import annotations

import bisect
import itertools
import math
import re
from collections import Counter

from sluice.init.column_types import Column

NAMED = re.compile(
    r"(^|_)(ip|app|os|device|channel|browser|carrier|site|domain|publisher|advertiser|brand|shop|store|seller|merchant|"
    r"vendor|mgr|manager|dept|department|deptname|role|category|cate|region|city|district|county|country|state|"
    r"occupation)(_?(id|code|type|model|name))?$", re.I)
FULL, REPEATS, LEAST = 0.2, 2.0, 20  # share of the range that is filled, rows a value has, values to tell by
DOMINANT = 0.25  # share of the rows: the least or largest value of so many says that most lack the amount
COMMON_DIGIT = 0.4  # share of one last digit: half and more where amounts are rounded to 2, 5 or 10


def are_codes(column: Column) -> str | None:
    """The reason, of a column of whole numbers; None where they may be amounts."""
    if NAMED.search(column.plain):
        return "whole numbers, by its name those of things and no amounts"
    if _recur_far_apart(column.distinct):
        return "whole numbers that recur, far apart and not rounded: names of things and no amounts"
    return None


def _recur_far_apart(counts: Counter[int]) -> bool:
    """Judged by the middle half of the rows, as the tails of amounts are thin; without a value that most have."""
    values, rows = sorted(counts), counts.total()
    [(most_common, most)] = counts.most_common(1)
    if most > DOMINANT * rows:
        if most_common in (values[0], values[-1]):
            return False
        values.remove(most_common)
        rows -= most
    if len(values) < LEAST or rows < REPEATS * len(values):
        return False
    grid = math.gcd(*(value - values[0] for value in values))
    reached = list(itertools.accumulate(counts[value] for value in values))
    low, high = (values[bisect.bisect(reached, rows * part // 4)] for part in (1, 3))
    between = sum(low <= value <= high for value in values)
    if between > FULL * ((high - low) // grid + 1):
        return False
    digits = Counter((value - values[0]) // grid % 10 for value in values if counts[value] > 1)
    return max(digits.values()) < COMMON_DIGIT * digits.total()
