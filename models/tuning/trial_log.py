"""Trials as they end: a tracked run for each, and a line of progress."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Literal

from optuna import Study
from optuna.trial import FrozenTrial, TrialState

from contracts.progress import OnProgress
from contracts.summaries.train import TrialFigures, TuneSummary
from models.tracking.tracking import Tracker
from models.tuning import search_space
from models.tuning.objective import TuningTask
from models.tuning.study import CONFIGURED, ERROR, TRACKED, best, ended

_STATES: dict[TrialState, Literal["complete", "pruned", "failed"]] = {
    TrialState.COMPLETE: "complete", TrialState.PRUNED: "pruned", TrialState.FAIL: "failed"}
_STATUS = {"complete": "FINISHED", "pruned": "KILLED", "failed": "FAILED"}


def figures(trial: FrozenTrial, task: TuningTask) -> TrialFigures:
    """Of a trial that has ended."""
    reported = trial.intermediate_values
    values = {name: value for name, value in trial.params.items() if name != "model"}
    return TrialFigures(
        number=trial.number, model=trial.params.get("model"), state=_STATES[trial.state], epochs=len(reported),
        score=trial.value if trial.value is not None else max(reported.values(), default=None),
        seconds=trial.duration.total_seconds() if trial.duration else None,
        configured=CONFIGURED in trial.user_attrs, settings=search_space.read(values),
        error=trial.user_attrs.get(ERROR))


class TrialLog:
    """Called with the study whenever a trial may have ended. What earlier searches tracked is not tracked again."""

    def __init__(self, task: TuningTask, tracker: Tracker, begin: float, on_progress: OnProgress | None) -> None:
        self._task, self._tracker, self._begin, self._on_progress = task, tracker, begin, on_progress

    def __call__(self, study: Study) -> None:
        tracked = set(study.user_attrs.get(TRACKED, ()))
        fresh = [trial for trial in ended(study) if trial.number not in tracked]
        for trial in fresh:
            self._track(figures(trial, self._task), trial.intermediate_values)
        if fresh:
            study.set_user_attr(TRACKED, sorted(tracked | {trial.number for trial in fresh}))
        if self._on_progress:
            gone, budget = time.time() - self._begin, self._task.deadline - self._begin
            self._on_progress(_line(study), int(min(gone, budget)), int(budget))

    def _track(self, trial: TrialFigures, scores: dict[int, float]) -> None:
        run = self._tracker.start(f"tune {trial.model} {trial.number}", {
            "model": trial.model, "study": self._task.study, "trial": trial.number, "state": trial.state,
            "configured": trial.configured, "train": trial.settings})
        for epoch, score in scores.items():
            run.metrics({"score": score}, epoch)
        run.metrics({"best_score": trial.score, "seconds": trial.seconds}, trial.epochs)
        run.end(_STATUS[trial.state])

    def outcome(self, found: TuneSummary, written: Path) -> None:
        """One more run: what was found, with the file."""
        run = self._tracker.start("tune", {
            "study": self._task.study, "model": found.best.model, "monitor": found.monitor, "adopted": found.adopted,
            "train": found.settings})
        run.metrics({"gain": found.gain, "gain_standard_error": found.gain_standard_error,
                     "best_score": found.best.score, "configured_score": found.configured.score})
        run.metrics({f"importance.{name}": share for name, share in found.importances.items()})
        run.artifact(written)
        run.end()


def _line(study: Study) -> str:
    leader = best(study)
    said = f", best {leader.value:.4f} ({leader.params['model']})" if leader else ""
    return f"{len(ended(study))} trials{said}"
