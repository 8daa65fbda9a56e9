"""What the models of one `sluice train` have in common: settings, examples, seed, tracking, progress."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from contracts.artifacts import Artifacts
from contracts.config.config import Config
from contracts.features.feature_spec import FeatureSpec
from contracts.progress import OnProgress
from models.examples.batches import ExampleSet
from models.examples.validation_half import ValidationHalf
from models.tracking.tracking import Tracker
from models.training.warm_start import Parent


@dataclass(frozen=True, kw_only=True)
class TrainingTask:
    """`force` trains again what is there already; `resume` takes up the checkpoint of an unfinished
    model; `parent` is the bundle to start from, None starts cold.

    `on_progress(model, done, all)` counts batches over all epochs.
    """

    config: Config
    out: Artifacts
    spec: FeatureSpec
    seed: int
    tracker: Tracker
    force: bool
    on_progress: OnProgress
    parent: Parent | None = None
    resume: bool = False

    def examples(self, window: str, fresh: bool = False) -> ExampleSet:
        """`fresh` reads the event-fresh twin of every column that has one."""
        return ExampleSet(self.out.examples(window), self.spec, fresh)

    def early_stopping(self, fresh: bool = False) -> ValidationHalf:
        """Half 0 of the validation window; half 1 calibrates."""
        return ValidationHalf(self.out.examples("validation"), self.spec, 0, fresh)


@contextmanager
def open_task(
    config: Config, out: Artifacts, *, seed: int | None, on_progress: OnProgress | None, force: bool = False,
    parent: Parent | None = None, resume: bool = False, silent: bool = False,
) -> Iterator[TrainingTask]:
    """Tracked while it is open, unless `silent`; `seed` None is the configuration's."""
    with Tracker(out.out, config.name, silent=silent) as tracker:
        yield TrainingTask(
            config=config, out=out, spec=FeatureSpec.read(out.encoding), tracker=tracker, force=force, parent=parent,
            resume=resume, seed=config.seed if seed is None else seed,
            on_progress=on_progress or (lambda what, done, total: None),
        )
