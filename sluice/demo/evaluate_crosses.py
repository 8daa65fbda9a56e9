"""The simulated marketplace's verdict on the crosses found: which planted ones are among them, and their worth."""

from __future__ import annotations

from typing import Any

from pipelines.marketplace.truth import Truth


def verdict(figures: dict[str, Any], truth: Truth, best: float) -> dict[str, Any]:
    """The step's figures with planted, found, incidental, precision, recall and share_of_oracle.

    `found` counts planted crosses met by their exact set of fields, whatever the granularity of their bins; `best` is
    the oracle's AUC, and share_of_oracle that of the consumer of models/cross_search/report.py.
    """
    kept = [frozenset(part.partition("#")[0] for part in cross["parts"]) for cross in figures["crosses"]]
    planted, incidental = set(map(frozenset, truth.planted)), set(map(frozenset, truth.incidental))
    found = planted & set(kept)
    shares = {
        name: (figures["arms"][arm]["auc"] - 0.5) / (best - 0.5)
        for name, arm in (("without", "none"), ("with", "fives")) if arm in figures.get("arms", {})
    }
    return {
        **figures,
        "planted": len(planted),
        "found": len(found),
        "incidental": len(incidental & set(kept)),
        "precision": len(found) / len(kept) if kept else 0.0,
        "recall": len(found) / len(planted),
        "share_of_oracle": shares,
    }
