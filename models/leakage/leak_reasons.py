"""Why a field is suspected of knowing the label: figures of one field -> sentences. No figure alone is a proof.

    near copy      alone it tells positives from negatives nearly without error
    irreplaceable  a large share of what all fields know together is known to it alone: what was known before an event
                   is hardly ever told by one field only (Bank's duration of the call; not Adult's relationship)
    after          whether it has a value at all depends on the label: it is filled in when the outcome is known
    clock          a number that grows with the days: it tells when, and will have values never seen in training
    fading         what it says holds inside the training window and not after it: it was made of those labels
    label column   it reads a column that the label is computed from

AUCs are lowered by 2 standard errors (Hanley and McNeil, 1982) before they are held against a limit.
"""

from __future__ import annotations

import math

from contracts.summaries.leaks import FieldFigures

NEAR_COPY, DOMINANT, STRONG = 0.95, 0.75, 0.7  # AUC of one field alone
IRREPLACEABLE, PRESENCE, CLOCK, FADING, FEWEST_DAYS = 0.2, 0.5, 0.9, 0.15, 4


def standard_error(auc: float, positives: int, negatives: int) -> float:
    """Hanley and McNeil's: from the AUC and the sizes of the classes alone."""
    first, second = auc / (2 - auc), 2 * auc**2 / (1 + auc)
    spread = auc * (1 - auc) + (positives - 1) * (first - auc**2) + (negatives - 1) * (second - auc**2)
    return math.sqrt(max(spread, 0.0) / (positives * negatives))


def reasons(figures: FieldFigures, label_column: str | None = None) -> dict[str, str]:
    """Kind of suspicion -> sentence; empty where there is none."""
    sure = figures.auc - 2 * figures.standard_error
    sentences: dict[str, str] = {}
    if label_column is not None:
        sentences["label column"] = f"it reads column {label_column!r}, from which the label is computed"
    if sure >= NEAR_COPY:
        sentences["near copy"] = f"alone it reaches an AUC of {figures.auc:.3f}: nearly a copy of the label"
    if sure >= DOMINANT and figures.irreplaceable is not None and figures.irreplaceable >= IRREPLACEABLE:
        sentences["irreplaceable"] = (
            f"alone it reaches an AUC of {figures.auc:.3f}, and {figures.irreplaceable:.0%} of what all fields know "
            "about the label is lost without it: ask whether it is known before the event"
        )
    gap = figures.present_positive - figures.present_negative
    if abs(gap) >= PRESENCE:
        sentences["after"] = (
            f"{figures.present_positive:.1%} of the positives have a value and {figures.present_negative:.1%} of the "
            "negatives: it seems to be filled in when the outcome is known"
        )
    return sentences | _in_time(figures, sure)


def _in_time(figures: FieldFigures, sure: float) -> dict[str, str]:
    sentences = {}
    if figures.day_correlation is not None and figures.days >= FEWEST_DAYS and abs(figures.day_correlation) >= CLOCK:
        sentences["clock"] = (
            f"its rank correlation with the day is {figures.day_correlation:.2f}: it tells the time, as a row counter "
            "or a timestamp does, and later rows have values that training never saw"
        )
    if figures.later_auc is not None and sure >= STRONG and figures.auc - figures.later_auc >= FADING:
        sentences["fading"] = (
            f"alone it reaches an AUC of {figures.auc:.3f} inside the training window and {figures.later_auc:.3f} "
            "after it: it seems to be made of the training labels"
        )
    return sentences
