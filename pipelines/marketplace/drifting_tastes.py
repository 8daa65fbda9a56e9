"""Tastes that change from day to day: the planted crosses, what segments like, and what is in fashion among items; and
apart from these, what each user likes for itself.

On day d the table of such a term is cos(a d) A + sin(a d) B: A as on day 0, B an independent draw of the same share of
the logit's variance, a radians a day; and so the vector of a user's taste, at a pace of its own. So every day is as
hard as any other, and after (pi / 2) / a days nothing of the first day's tastes is left. The fields of users, items and
the logging policy stay as they are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from pipelines.marketplace.truth import Term, Truth

COMPONENTS = ("crosses_order_2", "crosses_order_3", "segment_taste")
FASHIONS = ("category", "brand_tier", "format")  # main effects


@dataclass(frozen=True)
class Drift:
    """`first` and `other` are truths of one population with the same terms in the same order."""

    first: Truth
    other: Truth
    radians_a_day: float
    of_users: float = 0.0

    def on(self, day: int) -> Truth:
        """The truth of a day: terms that turn are cos(a) first + sin(a) other, a = radians_a_day * day; users' tastes
        the same with a = of_users * day."""
        terms = tuple(
            replace(term, table=turned(term.table, other.table, self.radians_a_day * day)) if turns(term) else term
            for term, other in zip(self.first.terms, self.other.terms, strict=True)
        )
        tastes = turned(self.first.user_taste, self.other.user_taste, self.of_users * day)
        return replace(self.first, terms=terms, user_taste=tastes)


def turned(first: np.ndarray, other: np.ndarray, angle: float) -> np.ndarray:
    """cos(angle) first + sin(angle) other."""
    return math.cos(angle) * first + math.sin(angle) * other


def turns(term: Term) -> bool:
    """Whether a term is a taste that changes."""
    return term.component in COMPONENTS or (term.component == "fields" and term.fields[0] in FASHIONS)
