"""Models of a train job made ahead, here or in another process: finished folders, which `train_models` takes up."""

from __future__ import annotations

from collections.abc import Sequence

from contracts.artifacts import Artifacts
from contracts.config.config import Config
from contracts.features.feature_spec import FeatureSpec
from contracts.progress import OnProgress
from models.evaluation import boosted_trees
from models.jobs import lightgbm_baseline, retrieval_training
from models.jobs.lightgbm_baseline import lightgbm_figures
from models.jobs.ranker_choice import unlike_models
from models.jobs.ranker_training import train_ranker
from models.jobs.resume import forget_other_runs
from models.jobs.retrieval_training import train_retrieval
from models.jobs.training_task import open_task
from models.layers.embedding import item_slot
from models.training.warm_start import Parent

# From the shortest training to longer ones; models that are not named here take longer still.
SHORTEST = ("popularity", "logistic_regression", lightgbm_baseline.NAME, "dnn", retrieval_training.TOWER, "din")


def names_ahead(config: Config, out: Artifacts) -> list[str]:
    """What `make_ahead` can make of a run: its rankers, and the two towers and LightGBM where they are wanted; what
    takes long comes first, so that of two who take turns neither waits long for the other."""
    spec = FeatureSpec.read(out.encoding)
    towers = [retrieval_training.TOWER] if item_slot(spec) else []
    trees = [lightgbm_baseline.NAME] if config.train.lightgbm_rows and boosted_trees.available() else []
    names = [*unlike_models(config.train, spec), *towers, *trees]
    return sorted(names, key=lambda name: -SHORTEST.index(name) if name in SHORTEST else -len(SHORTEST))


def make_ahead(
    config: Config, out: Artifacts, names: Sequence[str], seed: int | None = None, parent: Parent | None = None,
    on_progress: OnProgress | None = None,
) -> None:
    """Makes these of `names_ahead`, each as `train_models` with the same arguments would. Raises as it does."""
    with open_task(config, out, seed=seed, on_progress=on_progress, parent=parent) as task:
        forget_other_runs(task, [*names, retrieval_training.PRE_RANKER])
        for name in names:
            if name == retrieval_training.TOWER:
                train_retrieval(task)
            elif name == lightgbm_baseline.NAME:
                lightgbm_figures(task)
            else:
                train_ranker(task, name)
