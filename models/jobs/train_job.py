"""The train step: all rankers, the two towers, the pre-ranker, the choice of the ranker, freshness; one summary.

Restartable: a model whose settings, feature spec, examples and seed are as in its folder's summary is kept as it is.
Under torchrun every process fits, and the first alone writes files and tracking.
"""

from __future__ import annotations

import time
from typing import Any

from contracts import summary
from contracts.artifacts import Artifacts
from contracts.config.config import Config
from contracts.errors import ConfigError
from contracts.features.feature_spec import FeatureSpec
from models.jobs.lightgbm_baseline import outside_figures
from models.jobs.ranker_training import Job, train_ranker
from models.jobs.retrieval_training import train_retrieval
from models.layers.embedding import item_slot
from models.pair_rates.buckets import co_occurrence
from models.tracking.tracking import Tracker
from models.training import data_parallel
from models.training.device import resolve
from models.training.progress import OnProgress
from models.training.warm_start import Parent

TRIVIAL = "popularity"
LEFT_TO_THE_MODEL = ("curves", "digest")


def run(
    config: Config, out: Artifacts, *, seed: int | None = None, on_progress: OnProgress | None = None,
    force: bool = False, parent: Parent | None = None,
) -> dict[str, Any]:
    """Trains what `config.train` names and writes OUT/models/summary.json, which it also returns.

    `on_progress(model, batches done, batches in all)`; `force` trains again what is there already;
    `parent` is the bundle whose weights training starts from. Raises
    OneClassError when a window holds one class, ConfigError when no model may be the ranker.
    """
    _check_ranker(config)
    begin = time.perf_counter()
    spec = FeatureSpec.read(out.encoding)
    chosen_seed = config.seed if seed is None else seed
    world = data_parallel.join(resolve(config.train.device))
    with Tracker(out.out, config.name, silent=world.rank > 0) as tracker:
        job = Job(config, out, spec, chosen_seed, tracker, force, on_progress or (lambda what, done, total: None),
                  parent)
        models: dict[str, dict[str, Any]] = {name: train_ranker(job, name) for name in config.train.models}
        ranker = choose(config, models)
        found: dict[str, Any] = {
            "models": {name: _short(figures) for name, figures in models.items()},
            "ranker": ranker,
            **(train_retrieval(job) if item_slot(spec) else {"two_tower": None, "pre_ranker": None}),
            "freshness": _freshness(job, ranker, models[ranker]) if config.features.also_fresh else None,
            "co_occurrence": co_occurrence(out, spec, models),
            "outside": data_parallel.by_first(lambda: outside_figures(job)),
            "seed": chosen_seed,
            "parent": parent.manifest.version if parent else None,
        }
    found["seconds"] = time.perf_counter() - begin
    data_parallel.by_first(lambda: summary.write(out.out / "models", found))
    data_parallel.leave()
    return found


def choose(config: Config, models: dict[str, dict[str, Any]]) -> str:
    """The configured ranker, or the best by validation AUC. Popularity is a yardstick and never chosen by itself."""
    if config.train.ranker != "best":
        return config.train.ranker
    return max((name for name in models if name != TRIVIAL), key=lambda name: models[name]["validation_auc"])


def _check_ranker(config: Config) -> None:
    named, wanted = config.train.models, config.train.ranker
    if wanted != "best" and wanted not in named:
        raise ConfigError(f"train.ranker is {wanted!r}, which is not among train.models {list(named)}; add it there")
    if wanted == "best" and not set(named) - {TRIVIAL}:
        raise ConfigError(f"train.models is {list(named)}, which leaves no model to serve; add one, such as 'dcn_v2'")


def _freshness(job: Job, ranker: str, published: dict[str, Any]) -> dict[str, Any]:
    """The same model on features as of the last publish, and on event-fresh ones."""
    fresh = train_ranker(job, ranker, fresh=True)
    return {
        kind: {name: figures[name] for name in ("auc", "auc_standard_error", "gauc", "log_loss")}
        for kind, figures in (("published", published), ("fresh", fresh))
    }


def _short(figures: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in figures.items() if name not in LEFT_TO_THE_MODEL}
