"""Crosses found in the simulated marketplace against its truth: which planted ones are among them, and their worth."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from contracts.summaries.demo import CrossEvaluation
from pipelines.marketplace.truth import Truth
from sluice.demo.oracle import share_of_oracle

VARIANTS = {"none": "without", "fives": "with"}


def evaluate_crosses(
    parts: Collection[Collection[str]], variant_aucs: Mapping[str, float], truth: Truth, best: float
) -> CrossEvaluation:
    """`parts` of each cross found, as in "price#50"; the granularity of bins does not matter.

    `variant_aucs`: test AUC of the logistic regression of models/cross_search by variant; `best` is the
    oracle's AUC.
    """
    kept = [frozenset(part.partition("#")[0] for part in cross) for cross in parts]
    planted, incidental = set(map(frozenset, truth.planted)), set(map(frozenset, truth.incidental))
    found = planted & set(kept)
    return CrossEvaluation(
        planted=len(planted), found=len(found), incidental=len(incidental & set(kept)),
        precision=len(found) / len(kept) if kept else 0.0, recall=len(found) / len(planted),
        share_of_oracle={
            name: share_of_oracle(variant_aucs[variant], best)
            for variant, name in VARIANTS.items() if variant in variant_aucs
        },
    )
