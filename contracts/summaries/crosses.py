"""OUT/crosses/summary.json: what the search for cross features saw, kept, and is worth beside its baselines."""

from __future__ import annotations

from typing import Literal

from contracts.features.found_crosses import FoundCross
from contracts.summaries.summary import Record, Summary


class SearchEpoch(Record):
    """Mean log losses of one epoch: of the network on the fit part, of the structure on the holdout."""

    epoch: int
    fit_loss: float
    holdout_loss: float
    seconds: float


class VariantFigures(Record):
    """One set of crosses with the downstream logistic regression, at the ridges best on validation; `keys` of all its
    crosses. `gain` of test AUC over no crosses with its 95% interval; `rows` where it was fitted on fewer."""

    validation_loss: float
    validation_auc: float
    auc: float
    base_ridge: float
    cross_ridge: float | None = None
    crosses: int
    keys: int
    gain: float | None = None
    gain_low: float | None = None
    gain_high: float | None = None
    rows: int | None = None


class RepresentationFigures(Record):
    """Test AUC of a deep network that holds the crosses in one way, and its number of weights."""

    auc: float
    weights: int


class BoostedTreesFigures(Record):
    """LightGBM on the raw columns of the same rows."""

    auc: float
    validation_auc: float


class CrossComparison(Record):
    """On at most `compare_rows` rows; `variants` by the name of who chose the crosses, "none" and "fives" among
    them."""

    variants: dict[str, VariantFigures]
    representations: dict[str, RepresentationFigures]
    lightgbm: BoostedTreesFigures | None = None
    compare_rows: int


class CrossesSummary(Summary):
    """`crosses` by falling gain; `columns` in the order of the adjacency files; `phases` in seconds.

    The figures of the comparison (`CrossComparison`) are None where `crosses.compare_rows` = 0.
    """

    crosses: tuple[FoundCross, ...]
    columns: tuple[str, ...]
    allowed_pairs: int
    proposed: int
    split: Literal["time", "random folds"]
    history: tuple[SearchEpoch, ...]
    rows_per_second: float
    variants: dict[str, VariantFigures] | None = None
    representations: dict[str, RepresentationFigures] | None = None
    lightgbm: BoostedTreesFigures | None = None
    compare_rows: int | None = None
    seconds: float
    phases: dict[str, float]
