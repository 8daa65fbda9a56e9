"""The gate: may the challenger become champion? Ranking, calibration and latency on one test window, in words.

Promotes unless the lower 95% bound of challenger minus champion (GAUC, users resampled; AUC over rows where the log has
no users) lies below -margin: a challenger need not be better, since a fresh model is worth having, but must not be
worse. A predicted over observed that is surely off, or a funnel much slower than the champion's, are refused as well.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from contracts.artifacts import Artifacts
from contracts.config.days import Gate
from contracts.errors import DataError, OneClassError
from models.evaluation.auc_bootstrap import Bootstrap, bootstrap
from models.evaluation.gauc_bootstrap import calibration_interval, gauc_difference
from serving.bundle.loaded_bundle import LoadedBundle
from serving.bundle.scoring_bundle import ScoringBundle
from serving.replay.bundle_comparison import TestWindow, logits, median_milliseconds, read_window


def judge(out: Artifacts, challenger: Path, champion: Path | None, settings: Gate, seed: int) -> dict[str, Any]:
    """Figures, and `reasons` against the challenger: none when it may be promoted. The first one has no rival.

    Raises BundleError (or a kind of it) when a bundle cannot be loaded.
    """
    window = read_window(out)
    new = ScoringBundle.load(challenger)
    ours = logits(new, window)
    found: dict[str, Any] = {
        "challenger": new.version, "champion": None, "rows": len(ours), "settings": settings.model_dump(),
        "calibration": _calibration(window, new, ours, settings, seed),
    }
    if champion is not None:
        old = ScoringBundle.load(champion)
        found |= {"champion": old.version} | _against(window, ours, old, settings, seed)
        if new.spec.has_items and old.spec.has_items:
            found["milliseconds"] = _milliseconds(window, {"challenger": challenger, "champion": champion}, settings)
    return found | {"reasons": reasons(found, settings)}


def reasons(found: dict[str, Any], settings: Gate) -> list[str]:
    """One sentence for each thing that speaks against the challenger: what was found, and the limit."""
    said = [found["incomparable"]] if "incomparable" in found else []
    gain = found.get("difference")
    if gain and gain["low"] < -settings.margin:
        said.append(f"{gain['figure']}: challenger minus champion is {gain['value']:+.4f}, its lower 95% bound "
                    f"{gain['low']:+.4f} lies below -{settings.margin:g}")
    calibration, limit = found["calibration"], 1 + settings.max_miscalibration
    if calibration["low"] > limit or calibration["high"] < 1 / limit:
        said.append(f"calibration: predicted over observed is {calibration['value']:.3f} (95% between "
                    f"{calibration['low']:.3f} and {calibration['high']:.3f}), outside {1 / limit:.3f} to {limit:.3f}")
    spent = found.get("milliseconds")
    if spent and spent["challenger"] > settings.max_latency_ratio * spent["champion"]:
        said.append(f"latency: {spent['challenger']:.2f} ms against the champion's {spent['champion']:.2f} ms, more "
                    f"than {settings.max_latency_ratio:g} times as much")
    return said


def _calibration(
    window: TestWindow, bundle: ScoringBundle, scores: np.ndarray, settings: Gate, seed: int
) -> dict[str, float]:
    first = window.first_position
    probabilities = bundle.calibration.apply(scores[first])
    return _figures(calibration_interval(
        window.labels[first], probabilities, window.users[first], draws=settings.draws, seed=seed))


def _against(
    window: TestWindow, ours: np.ndarray, champion: ScoringBundle, settings: Gate, seed: int
) -> dict[str, Any]:
    """The difference; or why there is none, which refuses too."""
    try:
        theirs = logits(champion, window)
        if window.has_users:
            gain = gauc_difference(window.labels, ours, theirs, window.users, draws=settings.draws, seed=seed)
        else:
            gain = bootstrap(window.labels, ours, window.users, baseline=theirs, draws=settings.draws, seed=seed)
    except (OneClassError, DataError) as error:
        return {"incomparable": f"challenger and champion cannot be compared on this test window: {error}"}
    return {"difference": {"figure": "GAUC" if window.has_users else "AUC", **_figures(gain)}}


def _milliseconds(window: TestWindow, folders: dict[str, Path], settings: Gate) -> dict[str, float]:
    bundles = {name: LoadedBundle.load(folder, check_parity=False) for name, folder in folders.items()}
    users = np.unique(window.users)[: settings.latency_requests].tolist()
    return median_milliseconds(bundles, [str(user) for user in users], settings.latency_requests)


def _figures(found: Bootstrap) -> dict[str, float]:
    figures = {name: float(value) for name, value in found._asdict().items()}
    assert all(math.isfinite(value) for value in figures.values())
    return figures
