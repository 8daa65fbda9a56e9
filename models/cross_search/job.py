"""The step `sluice crosses`: search ▶ derive ▶ prune by gain ▶ compare with rivals, into crosses.json and a summary.

    OUT/crosses/crosses.json  adjacency_LAYER.npy  summary.json

Search and pruning see the training window alone, split in time inside itself. Restartable: crosses of equal settings,
seed and examples are kept as they are.
"""

from __future__ import annotations

import hashlib
import json
import time
from typing import Any

import numpy as np

from contracts import summary
from contracts.artifacts import ROW, Artifacts
from contracts.bundle.bundle import save_array
from contracts.config.config import Config
from contracts.errors import DataError
from contracts.features import found_crosses
from contracts.features.feature_spec import FeatureSpec
from contracts.features.found_crosses import FoundCrosses
from models.cross_search import search as cross_search
from models.cross_search.columns import CrossColumns, read
from models.cross_search.crossable_pairs import allowed_pairs
from models.cross_search.derivation import Cross, derive
from models.cross_search.pruning import Fold, GainJudge, Selected, folds_of, select
from models.cross_search.report import Search, compare_arms
from models.examples.batches import ExampleSet
from models.examples.window_part import WindowPart
from models.networks.edge_tensor import THRESHOLD
from models.networks.fives import nodes
from models.tracking.tracking import Tracker
from models.training.progress import OnProgress, batch_counter

CARRIED = 600  # crosses carried per start node and layer
DEEPER = 0.0  # threshold after the first layer: there the entries rank, as only their ratio in a row has a gradient
NAME = "crosses"


def run(
    config: Config, out: Artifacts, *, seed: int | None = None, on_progress: OnProgress | None = None,
    force: bool = False,
) -> dict[str, Any]:
    """Writes OUT/crosses and answers its summary. Raises DataError where no two columns can be crossed."""
    spec = without_crosses(FeatureSpec.read(out.encoding))
    chosen_seed = config.seed if seed is None else seed
    folder = out.examples("train")
    columns = read(ExampleSet(folder, spec), spec, config.crosses.sample_rows, chosen_seed)
    digest = _digest(config, chosen_seed, columns)
    known = found_crosses.read(out.crosses)
    if known is not None and known.digest == digest and not force:
        return summary.read(out.crosses)
    begin = time.perf_counter()
    (out.crosses / summary.FILE).unlink(missing_ok=True)
    with Tracker(out.out, config.name) as tracker:
        track = tracker.start(NAME, {"seed": chosen_seed, "data": config.name, "crosses": config.crosses.model_dump()})
        search = search_crosses(config, out, spec, columns, chosen_seed, on_progress)
        _write(out, search, digest)
        figures = {**_figures(search), **compare_arms(config, out, spec, search, chosen_seed)}
        spent = time.perf_counter() - begin
        figures |= {"seconds": spent, "phases": {**search.seconds, "compare": spent - sum(search.seconds.values())}}
        summary.write(out.crosses, figures)
        track.metrics({"crosses": len(search.selected), "seconds": spent,
                       **{f"gain.{one['name']}": one["gain"] for one in figures["crosses"]}})
        for path in sorted(out.crosses.iterdir()):
            track.artifact(path)
        track.end()
    return figures


def without_crosses(spec: FeatureSpec) -> FeatureSpec:
    """The spec that a search works with: crosses are made of plain fields."""
    return spec.model_copy(update={"fields": tuple(field for field in spec.fields if field.kind != "cross")})


def search_crosses(
    config: Config, out: Artifacts, spec: FeatureSpec, columns: CrossColumns, seed: int, on_progress: OnProgress | None
) -> Search:
    settings, folder = config.crosses, out.examples("train")
    fit, held = (WindowPart(folder, spec, part, settings.holdout_share) for part in ("fit", "held"))
    allowed = allowed_pairs(columns, config)
    if not allowed.any():
        names = ", ".join(slot.name for slot in columns.slots)
        raise DataError(f"no two of the columns {names or '(none)'} can be crossed; cross search needs two categorical "
                        "or binned fields, or crosses.budget = 0")
    places = _places(spec, columns)
    begin = time.perf_counter()
    found = cross_search.search(
        spec, fit, held, _spread(allowed, places, len(nodes(spec))), settings, config.train, seed,
        batch_counter(on_progress, "cross search", settings.epochs) if on_progress else None,
    )
    searched = time.perf_counter() - begin
    adjacency = [layer[np.ix_(places, places)] for layer in found.adjacency]
    thresholds = settings.thresholds or (THRESHOLD, *(DEEPER,) * (settings.layers - 1))
    proposals = derive(adjacency, thresholds, allowed, CARRIED)
    folds = _folds(columns, held, seed)
    selected = prune(columns, folds, list(proposals), config)
    seconds = {"search": searched, "prune": time.perf_counter() - begin - searched}
    return Search(
        columns, folds, allowed, adjacency, proposals, selected, settings.min_count, settings.representation,
        found.history, found.rows_per_second, seconds,
    )


def prune(columns: CrossColumns, folds: list[Fold], proposals: list[Cross], config: Config) -> list[Selected]:
    settings = config.crosses
    return select(GainJudge(columns, folds), proposals, settings.budget, settings.max_keys, settings.min_count,
                  settings.min_gain, settings.proposals)


def _folds(columns: CrossColumns, held: WindowPart, seed: int) -> list[Fold]:
    """The search's own split in time; random folds where the window has no order in time."""
    if not held.by_day:
        return folds_of(None, columns.rows, seed)
    return folds_of(np.isin(columns.row, held.column(ROW)), columns.rows, seed)


def _places(spec: FeatureSpec, columns: CrossColumns) -> list[int]:
    names = [slot.name for slot in nodes(spec)]
    return [names.index(slot.name) for slot in columns.slots]


def _spread(allowed: np.ndarray, places: list[int], count: int) -> np.ndarray:
    """[slots, slots] over columns -> [N, N] over nodes; lists of ids are nodes without edges."""
    full = np.zeros((count, count), dtype=bool)
    full[np.ix_(places, places)] = allowed
    return full


def _digest(config: Config, seed: int, columns: CrossColumns) -> str:
    """Changes with the settings, the seed and every id and label that the pruning sees."""
    settings = [config.crosses.model_dump(mode="json"), config.seed, seed, [slot._asdict() for slot in columns.slots]]
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
    for array in (columns.ids, columns.label, columns.row):
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def _write(out: Artifacts, search: Search, digest: str) -> None:
    FoundCrosses(digest=digest, crosses=tuple(search.found())).write(out.crosses)
    for number, layer in enumerate(search.adjacency, start=1):
        save_array(out.crosses / f"adjacency_{number}.npy", layer.astype(np.float32))


def _figures(search: Search) -> dict[str, Any]:
    return {
        "crosses": [cross.model_dump(mode="json") for cross in search.found()],
        "columns": [slot.name for slot in search.columns.slots],
        "allowed_pairs": int(search.allowed.sum()) // 2,
        "proposed": len(search.proposals),
        "split": "time" if len(search.folds) == 1 else "random folds",
        "history": search.history,
        "rows_per_second": search.rows_per_second,
    }
