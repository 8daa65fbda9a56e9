"""The job `sluice crosses`: search ▶ derive ▶ prune by gain ▶ compare with baselines, into crosses.json and a summary.

    OUT/crosses/crosses.json  adjacency_LAYER.npy  summary.json

Search and pruning see the training window alone, split in time inside itself. Restartable: crosses of equal settings,
seed and examples are kept as they are. The search keeps checkpoints in OUT/crosses/checkpoints until all is written;
pruning and comparison, which look at a sample of the rows, start over.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from contracts.artifacts import ROW, WINDOWS, Artifacts
from contracts.bundle.bundle import save_array
from contracts.config.config import Config
from contracts.errors import NothingToCrossError
from contracts.features import found_crosses
from contracts.features.feature_spec import FeatureSpec
from contracts.features.found_crosses import FoundCrosses
from contracts.progress import OnProgress
from contracts.summaries import summary
from contracts.summaries.crosses import CrossesSummary
from models.cross_search import search as cross_search
from models.cross_search.columns import CrossColumns, read
from models.cross_search.comparison import Sampled, compare_variants, rivals
from models.cross_search.crossable_pairs import allowed_pairs, require_configured
from models.cross_search.derivation import Cross, derive
from models.cross_search.outcome import SearchOutcome, SearchSpace
from models.cross_search.pruning import Fold, GainEstimator, Selected, folds_of, select
from models.cross_search.search_digest import search_digest
from models.cross_search.telling_columns import narrowed
from models.distributed.kept_parts import KeptParts
from models.distributed.run_checkpoint import CHECKPOINTS, RunCheckpoint, named
from models.examples.batches import ExampleSet
from models.examples.window_part import Part, WindowPart
from models.networks.edge_tensor import THRESHOLD
from models.networks.fives import nodes
from models.tracking.tracking import Tracker
from models.training.progress import batch_counter

CARRIED = 600  # crosses carried per start node and layer
DEEPER = 0.0  # threshold after the first layer: there the entries rank, as only their ratio in a row has a gradient
NAME = "crosses"
COMMAND = "sluice crosses"
COMPARED = f"{CHECKPOINTS}-comparison"
PLAIN = "plain"  # the folder of examples before they have the crosses


class OpenComparison(NamedTuple):
    """A search that is written down, and all that its comparison with baselines needs, here or in another process.
    `digest` names the search; `resume` takes up a comparison that was ended."""

    config: Config
    out: Artifacts
    spec: FeatureSpec
    outcome: SearchOutcome
    seed: int
    found: CrossesSummary
    digest: str
    resume: bool


class OpenRivals(NamedTuple):
    """All that is needed beside a search to make what its crosses are compared with, in another process; `plain`: where
    the examples lie as they were before they have the crosses."""

    config: Config
    out: Artifacts
    plain: Artifacts
    spec: FeatureSpec
    space: SearchSpace
    seed: int
    digest: str
    resume: bool


def find_crosses(
    config: Config, out: Artifacts, *, seed: int | None = None, on_progress: OnProgress | None = None,
    force: bool = False, resume: bool = False, beside: Callable[[OpenRivals], object] | None = None,
) -> tuple[CrossesSummary, OpenComparison | None]:
    """Writes OUT/crosses and returns its summary, and what `compare` then has to do; None where no comparison is wanted
    or it is there. `resume` takes up the checkpoint of a search that was ended. `beside` is told before the search what
    `compare_ahead` can do while it goes on, which `compare` then finds. Raises NothingToCrossError where no two
    columns can be crossed, ConfigError for the checkpoint of another search."""
    chosen_seed, every = config.seed if seed is None else seed, without_crosses(FeatureSpec.read(out.encoding))
    spec = narrowed(every, ExampleSet(out.examples("train"), every.model_copy()), config.crosses.max_columns,
                    chosen_seed)
    columns = read(ExampleSet(out.examples("train"), spec), spec, config.crosses.sample_rows, chosen_seed)
    require_configured(columns, config)
    digest = search_digest(config, out, spec, chosen_seed)
    known = _kept(out, digest, config)
    if known is not None and not force:
        return known, None
    begin = time.perf_counter()
    (out.crosses / summary.FILE).unlink(missing_ok=True)
    shutil.rmtree(out.crosses / PLAIN, ignore_errors=True)  # of a run that was killed
    with Tracker(out.out, config.name) as tracker:
        track = tracker.start(NAME, {"seed": chosen_seed, "data": config.name, "crosses": config.crosses.model_dump()})
        kept = _kept_run(config, out, digest, chosen_seed, resume)
        space = search_space(config, out, spec, columns, chosen_seed)
        wanted = config.crosses.compare_rows > 0
        ahead = beside if wanted and kept else None
        if ahead:
            ahead(OpenRivals(config, out, _set_aside(out), spec, space, chosen_seed, digest, resume))
        search = search_crosses(config, out, spec, space, chosen_seed, on_progress, kept)
        _write(out, search, digest)
        found = _summed_up(search, time.perf_counter() - begin)
        summary.write(out.crosses, found)
        if kept and not wanted:
            kept.clear()
        track.metrics({"crosses": len(found.crosses), "seconds": found.seconds,
                       **{f"gain.{cross.name}": cross.gain for cross in found.crosses}})
        for path in sorted(path for path in out.crosses.iterdir() if path.is_file()):
            track.artifact(path)
        track.end()
    taken_up = resume or ahead is not None
    return found, OpenComparison(config, out, spec, search, chosen_seed, found, digest, taken_up) if wanted else None


def compare_ahead(open_: OpenRivals) -> None:
    """Makes, while a search goes on, what its crosses are compared with, for `compare` to find; not the crosses' own
    part. Raises as `compare` does."""
    parts = _kept_parts(open_)
    sampled = Sampled.read(open_.config, open_.plain, open_.spec, open_.seed)
    shutil.rmtree(open_.plain.out, ignore_errors=True)
    rivals(open_.config, open_.out, open_.spec, open_.space, sampled, open_.seed, parts)


def _set_aside(out: Artifacts) -> Artifacts:
    """Links to the files of the examples, which stay as they are when the examples are written again."""
    plain = Artifacts(out.crosses / PLAIN)
    for window in WINDOWS:
        shutil.copytree(out.examples(window), plain.examples(window), copy_function=_linked)
    return plain


def _linked(file: str, link: str) -> None:
    try:
        os.link(file, link)
    except OSError:  # a file system without links
        shutil.copyfile(file, link)


def compare(search: OpenComparison) -> CrossesSummary:
    """Adds to the summary what the crosses are worth beside baselines, and returns it. Raises SluiceError after a
    SIGTERM while a network is trained, when all is written."""
    begin = time.perf_counter()
    parts = _kept_parts(search)
    comparison = compare_variants(search.config, search.out, search.spec, search.outcome, search.seed, parts)
    spent = time.perf_counter() - begin
    found = search.found.model_copy(update={
        **(dict(comparison) if comparison else {}), "seconds": search.found.seconds + spent,
        "phases": {**search.found.phases, "compare": spent}})
    summary.write(search.out.crosses, found)
    parts.clear()
    shutil.rmtree(search.out.crosses / CHECKPOINTS, ignore_errors=True)
    with Tracker(search.out.out, search.config.name) as tracker:
        track = tracker.start(f"{NAME} compared", {"seed": search.seed, "rows": found.compare_rows})
        track.metrics({f"auc.{name}": figures.auc for name, figures in (found.variants or {}).items()})
        track.artifact(search.out.crosses / summary.FILE)
        track.end()
    return found


def _kept(out: Artifacts, digest: str, config: Config) -> CrossesSummary | None:
    """The summary of an equal search before, with the comparison where one is wanted."""
    written = found_crosses.read(out.crosses)
    if written is None or written.digest != digest:
        return None
    known = summary.kept(out.crosses, CrossesSummary)
    return known if known and (known.variants is not None or not config.crosses.compare_rows) else None


def _kept_run(config: Config, out: Artifacts, digest: str, seed: int, resume: bool) -> RunCheckpoint | None:
    """The search's checkpoint, every `train.checkpoint_minutes`; None where none are wanted."""
    minutes = config.train.checkpoint_minutes
    if not minutes:
        return None
    identity = _identity(config, digest, seed)
    return RunCheckpoint(out.crosses / CHECKPOINTS, 60.0 * minutes, identity, resume, COMMAND)


def _kept_parts(search: OpenComparison | OpenRivals) -> KeptParts:
    """What the comparison has finished, beside the search's checkpoint, which stays until all is compared."""
    minutes = search.config.train.checkpoint_minutes
    return KeptParts(search.out.crosses / COMPARED if minutes else None, 60.0 * minutes,
                     _identity(search.config, search.digest, search.seed), search.resume, COMMAND)


def _identity(config: Config, digest: str, seed: int) -> dict[str, str]:
    return {"seed": str(seed), "examples": digest[:12], **named("crosses", config.crosses),
            **named("train", config.train, {"checkpoint_minutes"})}


def without_crosses(spec: FeatureSpec) -> FeatureSpec:
    """The spec that a search works with: crosses are made of plain fields."""
    return spec.model_copy(update={"fields": tuple(field for field in spec.fields if field.kind != "cross")})


def search_space(
    config: Config, out: Artifacts, spec: FeatureSpec, columns: CrossColumns, seed: int
) -> SearchSpace:
    """Raises NothingToCrossError where no two of the columns can be crossed."""
    allowed = allowed_pairs(columns, config)
    if not allowed.any():
        names = ", ".join(slot.name for slot in columns.slots)
        raise NothingToCrossError(f"no two of the columns {names or '(none)'} can be crossed; cross search needs two "
                                  "categorical or binned fields, or crosses.budget = 0")
    holdout = _part(config, out, spec, "holdout")
    return SearchSpace(columns=columns, folds=_folds(columns, holdout, seed), allowed=allowed)


def search_crosses(
    config: Config, out: Artifacts, spec: FeatureSpec, space: SearchSpace, seed: int, on_progress: OnProgress | None,
    kept: RunCheckpoint | None = None,
) -> SearchOutcome:
    """Raises what the search raises."""
    settings, columns, allowed = config.crosses, space.columns, space.allowed
    places = _places(spec, columns)
    begin = time.perf_counter()
    fit, holdout = (_part(config, out, spec, part) for part in ("fit", "holdout"))
    found = cross_search.search(
        spec, fit, holdout, _spread(allowed, places, len(nodes(spec))), settings, config.train, seed,
        batch_counter(on_progress, "cross search", settings.epochs) if on_progress else None, kept,
    )
    searched = time.perf_counter() - begin
    adjacency = [layer[np.ix_(places, places)] for layer in found.adjacency]
    thresholds = settings.thresholds or (THRESHOLD, *(DEEPER,) * (settings.layers - 1))
    proposals = derive(adjacency, thresholds, allowed, CARRIED)
    selected = prune(columns, space.folds, list(proposals), config)
    seconds = {"search": searched, "prune": time.perf_counter() - begin - searched}
    return SearchOutcome(
        columns=columns, folds=space.folds, allowed=allowed, adjacency=adjacency, proposals=proposals,
        selected=selected, min_count=settings.min_count, representation=settings.representation,
        history=found.history, rows_per_second=found.rows_per_second, seconds=seconds,
    )


def prune(columns: CrossColumns, folds: list[Fold], proposals: list[Cross], config: Config) -> list[Selected]:
    """Those of the proposals that gain enough on the holdout, within the configured budgets."""
    settings = config.crosses
    return select(
        GainEstimator(columns, folds), proposals, budget=settings.budget, max_keys=settings.max_keys,
        min_count=settings.min_count, min_gain=settings.min_gain, limit=settings.proposals)


def _part(config: Config, out: Artifacts, spec: FeatureSpec, part: Part) -> WindowPart:
    return WindowPart(out.examples("train"), spec, part, config.crosses.holdout_share)


def _folds(columns: CrossColumns, holdout: WindowPart, seed: int) -> list[Fold]:
    """The search's own split in time; random folds where the window has no order in time."""
    if not holdout.by_day:
        return folds_of(None, columns.rows, seed)
    return folds_of(np.isin(columns.row, holdout.column(ROW)), columns.rows, seed)


def _places(spec: FeatureSpec, columns: CrossColumns) -> list[int]:
    names = [slot.name for slot in nodes(spec)]
    return [names.index(slot.name) for slot in columns.slots]


def _spread(allowed: np.ndarray, places: list[int], count: int) -> np.ndarray:
    """[slots, slots] over columns -> [N, N] over nodes; lists of ids are nodes without edges."""
    full = np.zeros((count, count), dtype=bool)
    full[np.ix_(places, places)] = allowed
    return full


def _write(out: Artifacts, search: SearchOutcome, digest: str) -> None:
    FoundCrosses(digest=digest, crosses=tuple(search.found())).write(out.crosses)
    for number, layer in enumerate(search.adjacency, start=1):
        save_array(out.crosses / f"adjacency_{number}.npy", layer.astype(np.float32))


def _summed_up(search: SearchOutcome, spent: float) -> CrossesSummary:
    return CrossesSummary(
        crosses=tuple(search.found()), columns=tuple(slot.name for slot in search.columns.slots),
        allowed_pairs=int(search.allowed.sum()) // 2, proposed=len(search.proposals),
        split="time" if len(search.folds) == 1 else "random folds", history=search.history,
        rows_per_second=search.rows_per_second, seconds=spent, phases=search.seconds,
    )
