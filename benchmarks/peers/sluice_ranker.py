"""One ranker of the platform on the same plan: its own reader, loop and network, popularity and unknown ids included.

The bias of positions is left out: the peer knows none, so that both say what a row is worth wherever it was shown.

    run(PLAN)       PLAN: a file of benchmarks/peers/plan.py; its rows are an OUT of `sluice features`
"""

from __future__ import annotations

import resource
import time
from pathlib import Path

import numpy as np
import torch

from benchmarks.peers.plan import Outcome, Plan
from contracts.artifacts import Artifacts
from contracts.config.training import Train
from contracts.features.feature_spec import FeatureSpec
from models.examples.batches import ExampleSet
from models.networks import registry
from models.training import fitting


def run(path: str) -> None:
    """Trains, and writes probabilities and outcome."""
    plan = Plan.read(path)
    torch.set_num_threads(plan.threads)
    torch.manual_seed(plan.seed)
    windows, settings = examples(Path(plan.rows)), settings_of(plan)
    network = registry.build(plan.model, windows["train"].spec, settings)
    ends: list[float] = []
    begin = time.perf_counter()
    fitted = fitting.fit(network, windows["train"], windows["validation"], settings, plan.seed,
                      on_epoch=lambda _: ends.append(time.perf_counter()))
    for window in ("validation", "test"):
        logits = fitting.predict(network, windows[window])
        np.save(Path(plan.out, f"{window}.npy"), 1.0 / (1.0 + np.exp(-logits)))
    Outcome(rows_per_second=fitted.rows_per_second, seconds_to_best=ends[fitted.best_epoch - 1] - begin,
            epochs=len(ends), best_epoch=fitted.best_epoch,
            peak_mib=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024).write(plan.out)


def examples(out: Path) -> dict[str, ExampleSet]:
    """The three windows, whole."""
    places = Artifacts(out)
    spec = FeatureSpec.read(places.encoding)
    return {window: ExampleSet(places.examples(window), spec) for window in ("train", "validation", "test")}


def settings_of(plan: Plan) -> Train:
    """All that the plan does not say is by default; cross layers are of full rank, as the peer's are."""
    return Train(
        embedding_dim=plan.width, hidden=tuple(plan.hidden), dropout=plan.dropout, cross_layers=plan.cross_layers,
        cross_rank=0, batch_size=plan.batch_size, embedding_l2=plan.l2, epochs=plan.epochs, patience=plan.patience,
        learning_rate=plan.learning_rate, clip_norm=plan.clip_norm, precision=plan.precision, device="cpu",
    )  # type: ignore[arg-type]
