"""The models of a run trained in two processes, each of which takes the next when it is free, the longest first."""

from __future__ import annotations

from collections.abc import Callable

from contracts.artifacts import Artifacts
from contracts.config.config import Config
from contracts.progress import OnProgress
from models.jobs.ahead import make_ahead, names_ahead
from models.training.warm_start import Parent
from sluice.run.side_lane import SideLane


def train_in_two(
    lane: SideLane, config: Config, out: Artifacts, seed: int | None, parent: Parent | None, on_progress: OnProgress,
    then: Callable[[], object] = lambda: None,
) -> None:
    """Leaves finished folders, which the train job takes up; `then` may give the lane what it goes on with when no
    model is left. Raises what training raises, in either process."""
    names = names_ahead(config, out)
    beside = {name: lane.submit(make_ahead, config, out, [name], seed, parent) for name in names}
    then()
    for name in names:
        if beside[name].cancel():
            make_ahead(config, out, [name], seed, parent, on_progress)
    for name, piece in beside.items():
        if not piece.cancelled():
            on_progress(f"{name}, beside", 0, 1)
            piece.result()
