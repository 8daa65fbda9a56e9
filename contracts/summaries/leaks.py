"""OUT/leaks/summary.json: what every field knows about the label alone, and which are suspected of a leak."""

from __future__ import annotations

from contracts.summaries.summary import Record, Summary


class FieldFigures(Record):
    """Of one field, on rows that no part of the models has seen; None where it cannot be known.

    auc               alone, inside the training window
    standard_error    of it
    irreplaceable     (AUC of all fields - AUC without this one) / (AUC of all fields - 0.5); of dominant fields alone
    present_positive  share of positives that have a value; present_negative likewise
    later_auc         the same model on the validation window
    day_correlation   rank correlation of a number with the day; days = number of days
    """

    auc: float
    standard_error: float
    irreplaceable: float | None = None
    present_positive: float
    present_negative: float
    later_auc: float | None = None
    day_correlation: float | None = None
    days: int = 0


class ValueGroup(Record):
    """One value, or a range of numbers: its `share` of the rows and its `rate` of positives."""

    value: str
    share: float
    rate: float


class SuspectedField(Record):
    """A sentence and its kind per reason, in the same order; `profile` is what the field's values say."""

    reasons: tuple[str, ...]
    kinds: tuple[str, ...]
    profile: tuple[ValueGroup, ...] = ()


class LeaksSummary(Summary):
    """`skipped` says why nothing could be evaluated; `planted_found` False: the rows are too few to find a leak."""

    rows: int | None = None
    fields: dict[str, FieldFigures]
    suspected: dict[str, SuspectedField]
    planted_found: bool | None = None
    skipped: str | None = None
    seconds: float | None = None
