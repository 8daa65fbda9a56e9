"""All figures of one model on one window, and the curves behind them."""

from __future__ import annotations

import numpy as np

from contracts.summaries.train import Curves, EvaluationFigures, ReliabilityCurve, RocCurve
from models.evaluation.calibration import Calibration
from models.evaluation.calibration_metrics import ece, predicted_over_observed, reliability
from models.evaluation.metrics import auc, checked, gauc, log_loss, require_both_classes, tie_starts
from models.evaluation.ranking_metrics import ndcg_at_k

ROC_POINTS = 200


def evaluate(
    logits: np.ndarray, labels: np.ndarray, users: np.ndarray | None, calibration: Calibration, *,
    position_logit: np.ndarray | float = 0.0, log_draws: np.ndarray | float = 0.0, where: str = "evaluation",
    telling: np.ndarray | None = None,
) -> EvaluationFigures:
    """AUC, GAUC and NDCG@10 by user of the logits (the last two None without users, GAUC also without a user of both
    classes); log loss, ECE and predicted over observed of the calibrated probabilities; `curves` for plots.

    Logits are those of position 1, by which a server ranks. `position_logit` is what the slot a row was shown in adds;
    probabilities include it, because the label was observed there. With the `log_draws` of rows that were drawn for
    positives they are those of a positive among such rows. `telling` (bool [N]): the rows that these are held against,
    all without it (models/evaluation/slot_calibration.py).

    Raises OneClassError, naming `where` and the counts, when the labels are of one class.
    """
    labels, logits = checked(labels, logits)
    require_both_classes(labels, where)
    probabilities = calibration.apply(logits + position_logit, log_draws)
    per_user = gauc(labels, logits, users) if users is not None else None
    told = slice(None) if telling is None else telling
    observed, predicted = labels[told], probabilities[told]
    bins = reliability(observed, predicted)
    return EvaluationFigures(
        auc=auc(labels, logits),
        gauc=per_user.value if per_user else None,
        gauc_users=per_user.users if per_user else 0,
        gauc_skipped=per_user.skipped if per_user else 0,
        ndcg_10=ndcg_at_k(labels, logits, users, 10) if users is not None else None,
        log_loss=log_loss(observed, predicted),
        ece=ece(observed, predicted),
        predicted_over_observed=predicted_over_observed(observed, predicted),
        rows=len(labels),
        positives=int(labels.sum()),
        curves=Curves(
            roc=roc(labels, logits),
            reliability=ReliabilityCurve(**{name: values.tolist() for name, values in bins._asdict().items()}),
        ),
    )


def roc(labels: np.ndarray, logits: np.ndarray, points: int = ROC_POINTS) -> RocCurve:
    """False and true positive rates at up to `points` thresholds, from (0, 0) to (1, 1); ties make one step."""
    order = np.argsort(-logits)
    ends = np.append(tie_starts(logits[order])[1:], len(labels))
    hits = np.append(0, np.cumsum(labels[order])[ends - 1])
    shown = np.append(0, ends)
    kept = np.unique(np.linspace(0, len(shown) - 1, points).round().astype(int))
    misses = shown - hits
    return RocCurve(
        false_positive_rate=(misses[kept] / misses[-1]).tolist(), true_positive_rate=(hits[kept] / hits[-1]).tolist()
    )
