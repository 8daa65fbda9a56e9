"""One downstream model, many sets of crosses: what each is worth to a logistic regression on the same rows.

Ridge penalties are chosen on the validation rows for every set alike, that of the single columns first and that of the
crosses after it; the test rows are read once, for the figure in the report.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from contracts.summaries.crosses import VariantFigures
from models.cross_search import ridge_logistic
from models.cross_search.columns import CrossColumns, joined
from models.cross_search.derivation import Cross
from models.cross_search.pruning import log_loss
from models.cross_search.ridge_logistic import Column
from models.evaluation.bootstrap import auc_bootstrap
from models.evaluation.metrics import auc

BASE_RIDGES = (2.0, 4.0, 8.0, 16.0, 32.0)
CROSS_RIDGES = (3.0, 10.0, 30.0)
Coded = tuple[np.ndarray, int]


class Variant(NamedTuple):
    """The downstream model with one set of crosses, at the ridges chosen on validation; test_logits [rows of test]."""

    validation_loss: float
    validation_auc: float
    auc: float
    base_ridge: float
    cross_ridge: float | None
    crosses: int
    keys: int
    test_logits: np.ndarray

    def figures(self) -> VariantFigures:
        """All but the logits."""
        return VariantFigures(**{name: value for name, value in self._asdict().items() if name != "test_logits"})


@dataclass(frozen=True, kw_only=True)
class DownstreamModel:
    """Logistic regression on the columns of three windows. `base_ridges` and `cross_ridges` are what is tried."""

    train: CrossColumns
    validation: CrossColumns
    test: CrossColumns
    base_ridges: Sequence[float] = BASE_RIDGES
    cross_ridges: Sequence[float] = CROSS_RIDGES
    iterations: int = 100

    def without_crosses(self) -> Variant:
        """On the single columns alone, at the best of `base_ridges`."""
        return min((self._fitted([], ridge, None) for ridge in self.base_ridges), key=_loss)

    def with_crosses(self, crosses: Sequence[Cross], base_ridge: float, buckets: int = 0) -> Variant:
        """At the best of `cross_ridges`, and of one and two times `base_ridge` for the single columns.

        `buckets` > 0 hashes the keys of a larger cross by modulo.
        """
        coded = [_hashed(*self._rows.codes(sorted(cross)), buckets) for cross in crosses]
        tried = [self._fitted(coded, base_ridge, ridge) for ridge in self.cross_ridges]
        best = min(tried, key=_loss)
        return min((best, self._fitted(coded, 2.0 * base_ridge, best.cross_ridge)), key=_loss)

    @cached_property
    def _rows(self) -> CrossColumns:
        """Train, validation and test one below the other, so that one numbering of codes serves all."""
        return joined([self.train, self.validation, self.test])

    @cached_property
    def _singles(self) -> list[Coded]:
        return [self._rows.codes([place]) for place in range(len(self._rows.slots))]

    def _fitted(self, crosses: Sequence[Coded], base_ridge: float, cross_ridge: float | None) -> Variant:
        columns = [Column(*coded, base_ridge) for coded in self._singles]
        columns += [Column(*coded, cross_ridge or base_ridge) for coded in crosses]
        rows = self.train.rows
        first = [column._replace(codes=column.codes[:rows]) for column in columns]
        model = ridge_logistic.fit(first, self.train.label, self.iterations)
        logits = model.logits([column.codes[rows:] for column in columns])
        validation, test = logits[: self.validation.rows], logits[self.validation.rows :]
        return Variant(
            validation_loss=log_loss(validation, self.validation.label) / self.validation.rows,
            validation_auc=auc(self.validation.label, validation), auc=auc(self.test.label, test),
            base_ridge=base_ridge, cross_ridge=cross_ridge, crosses=len(crosses),
            keys=sum(size for _, size in crosses), test_logits=test,
        )


def compared(variant: Variant, base: Variant, label: np.ndarray, draws: int, seed: int) -> VariantFigures:
    """Figures of the variant, and its `gain` of AUC over the base with a 95% interval over `draws` of the test
    rows, the same for both; `label` [rows of test]."""
    found = auc_bootstrap(
        label, variant.test_logits, np.arange(len(label)), baseline=base.test_logits, draws=draws, seed=seed)
    return variant.figures().model_copy(update={"gain": found.value, "gain_low": found.low, "gain_high": found.high})


def _hashed(codes: np.ndarray, size: int, buckets: int) -> Coded:
    return (codes % buckets, buckets) if 0 < buckets < size else (codes, size)


def _loss(variant: Variant) -> float:
    return variant.validation_loss
