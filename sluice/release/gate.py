"""The gate: may the challenger become champion? Ranking, calibration, retrieval and latency on one test window.

Promotes unless the lower 95% bound of challenger minus champion (GAUC, users resampled; AUC over rows where the log has
no users) lies below -margin: a challenger need not be better, since a fresh model is worth having, but must not be
worse. A predicted over observed that is surely off, a retrieval that surely loses clicks which the champion's finds, or
a funnel much slower than the champion's, are refused as well.
Of a log of positives alone predicted and observed are those of the window's rows, as they were drawn.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from contracts.artifacts import Artifacts
from contracts.config.days import Gate
from contracts.errors import DataError, OneClassError
from contracts.release.gate import Estimate, GateVerdict, MedianMilliseconds, RankingGain, RecallGain
from models.evaluation.bootstrap import auc_bootstrap, calibration_interval, gauc_difference, mean_bootstrap
from serving.bundle.loaded_bundle import LoadedBundle
from serving.bundle.scoring_bundle import ScoringBundle
from serving.replay import retrieval_comparison
from serving.replay.bundle_comparison import TestWindow, logits, median_milliseconds, read_window


def evaluate_challenger(
    out: Artifacts, challenger: Path, champion: Path | None, settings: Gate, seed: int
) -> GateVerdict:
    """Both bundles on the test window of `out`; no reasons when the challenger may be promoted. The first version has
    no champion to beat.

    Raises BundleError (or a kind of it) when a bundle cannot be loaded.
    """
    window = read_window(out)
    new = ScoringBundle.load(challenger)
    scores = logits(new, window)
    verdict = GateVerdict(
        challenger=new.version, rows=len(scores), settings=settings,
        calibration=_calibration(window, new, scores, settings, seed),
    )
    if champion is not None:
        old = ScoringBundle.load(champion)
        verdict = verdict.model_copy(
            update={"champion": old.version} | _difference(window, scores, old, settings, seed))
        if new.spec.has_items and old.spec.has_items:
            ours, theirs = (LoadedBundle.load(folder, check_parity=False) for folder in (challenger, champion))
            verdict = verdict.model_copy(update={"recall": _recall(out, window, ours, theirs, settings, seed),
                                                 "milliseconds": _milliseconds(window, ours, theirs, settings)})
    return verdict.model_copy(update={"reasons": reasons(verdict, settings)})


def reasons(verdict: GateVerdict, settings: Gate) -> tuple[str, ...]:
    """One sentence for each thing that speaks against the challenger: the value, and the limit."""
    sentences = [verdict.incomparable] if verdict.incomparable else []
    gain = verdict.difference
    if gain and gain.low < -settings.margin:
        sentences.append(f"{gain.figure}: challenger minus champion is {gain.value:+.4f}, its lower 95% bound "
                         f"{gain.low:+.4f} lies below -{settings.margin:g}")
    calibration, limit = verdict.calibration, 1 + settings.max_miscalibration
    if calibration and (calibration.low > limit or calibration.high < 1 / limit):
        sentences.append(f"calibration: predicted over observed is {calibration.value:.3f} (95% between "
                         f"{calibration.low:.3f} and {calibration.high:.3f}), outside {1 / limit:.3f} to {limit:.3f}")
    found = verdict.recall
    if found and found.high < -settings.max_recall_loss:
        sentences.append(f"retrieval: finds {found.challenger:.3f} of {found.clicks} clicks, the champion's "
                         f"{found.champion:.3f}; the upper 95% bound of the difference, {found.high:+.4f}, lies below "
                         f"-{settings.max_recall_loss:g}")
    spent = verdict.milliseconds
    if spent and spent.challenger > settings.max_latency_ratio * spent.champion:
        sentences.append(f"latency: {spent.challenger:.2f} ms of processor time against the champion's "
                         f"{spent.champion:.2f} ms, more than {settings.max_latency_ratio:g} times as much")
    return tuple(sentences)


def _calibration(
    window: TestWindow, bundle: ScoringBundle, scores: np.ndarray, settings: Gate, seed: int
) -> Estimate:
    first = window.first_position
    probabilities = bundle.calibration.apply(scores, window.log_draws)[first]
    interval = calibration_interval(
        window.labels[first], probabilities, window.users[first], draws=settings.draws, seed=seed)
    return Estimate(**interval._asdict())


def _difference(
    window: TestWindow, scores: np.ndarray, champion: ScoringBundle, settings: Gate, seed: int
) -> dict[str, RankingGain | str]:
    """`difference`; or `incomparable`, why there is none, which refuses too."""
    try:
        before = logits(champion, window)
        if window.has_users:
            gain = gauc_difference(window.labels, scores, before, window.users, draws=settings.draws, seed=seed)
        else:
            gain = auc_bootstrap(window.labels, scores, window.users, baseline=before, draws=settings.draws,
                                 seed=seed)
    except (OneClassError, DataError) as error:
        return {"incomparable": f"challenger and champion cannot be compared on this test window: {error}"}
    return {"difference": RankingGain(figure="GAUC" if window.has_users else "AUC", **gain._asdict())}


def _recall(
    out: Artifacts, window: TestWindow, challenger: LoadedBundle, champion: LoadedBundle, settings: Gate, seed: int
) -> RecallGain | None:
    """None without clicks of two users to judge by."""
    clicks = retrieval_comparison.sample(window, settings.recall_clicks, seed)
    users = window.users[clicks]
    if len(np.unique(users)) < 2:
        return None
    new, old = (retrieval_comparison.found(out, bundle, window, clicks).astype(np.float64)
                for bundle in (challenger, champion))
    gain = mean_bootstrap(new - old, users, draws=settings.draws, seed=seed)
    return RecallGain(**gain._asdict(), clicks=len(clicks), challenger=float(new.mean()), champion=float(old.mean()))


def _milliseconds(
    window: TestWindow, challenger: LoadedBundle, champion: LoadedBundle, settings: Gate
) -> MedianMilliseconds:
    users = np.unique(window.users)[: settings.latency_requests].tolist()
    return MedianMilliseconds(**median_milliseconds(
        {"challenger": challenger, "champion": champion}, [str(user) for user in users], settings.latency_requests))
