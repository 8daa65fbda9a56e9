"""The jobs of a run, each alone, restartable, and with a summary beside its output; and all of them in a row."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from contracts.artifacts import Artifacts
from contracts.config.config import Config
from contracts.errors import ConfigError, NothingToCrossError
from contracts.summaries import summary
from contracts.summaries.crosses import CrossesSummary
from contracts.summaries.features import FeaturesSummary
from contracts.summaries.federated import ServerAppSummary
from contracts.summaries.leaks import LeaksSummary
from contracts.summaries.pair_rates import PairRatesSummary
from contracts.summaries.prerank import PrerankSummary
from contracts.summaries.run import RunSummary
from contracts.summaries.train import ChannelsSummary, TrainSummary, TuneSummary
from sluice.report.positives_alone import meaning
from sluice.run.bundle_job import build_bundle
from sluice.run.needed_folder import need
from sluice.run.one_process import is_first, refuse_several
from sluice.run.progress import show_progress
from sluice.run.side_lane import SideLane

if TYPE_CHECKING:  # torch and the registry are asked for by training alone
    import torch

    from models.cross_search.job import OpenComparison
    from sluice.release.warm_parent import WarmStartSource

NO_TIMES = "the log has no times: rows were dealt out by hash, and no drift over time can be seen; set log.event_time"
NO_USERS = "the log has no users; set log.user_id"
NO_ITEMS = "the log has no items to choose from; set log.item_id"
NO_CROSSES = "crosses.budget is 0, so none are searched; set how many are wanted"
NO_REQUESTS = "the log has no times, so no past requests; set log.event_time"
NO_PAIRS = "no pair has its click rate read; name some in pair_rates.pairs, and the run says whether they pay"
NO_PAIR_MODEL = "pair_rates.model is none, so no pair has its click rate read; set it to pcf_gnn or table"
NO_CHOICE = "prerank.kind is not fscd, which alone chooses fields; set it"


def run_features(
    config: Config, data: str | Path | None, out: Artifacts, console: Console, day: str | None = None,
    until: str | None = None, encoding: Path | None = None,
) -> tuple[FeaturesSummary, LeaksSummary | None]:
    """Log to encoded examples, then the leak check; without it where one `day` is made again. `until`: as that day
    ended; `encoding`: of a run or bundle, kept as it is."""
    refuse_several("features")
    from pipelines.jobs import feature_job

    with show_progress(console, "features"):
        made = feature_job.make_features(config, data, out, day=day, until=until, encoding=encoding)
    if made.drawn is not None:
        console.print(meaning(made.drawn), highlight=False, markup=False)
    return made, None if day else check_leaks(config, out, console)


def check_leaks(config: Config, out: Artifacts, console: Console) -> LeaksSummary:
    """Which fields may know the label; a warning each, and no more: the run goes on with them."""
    from models.leakage import leak_check
    from sluice.report.tables import print_leaks

    with show_progress(console, "leak check"):
        leaks = leak_check.check_for_leaks(config, out)
    print_leaks(leaks, console)
    return leaks


def run_crosses(
    config: Config, out: Artifacts, console: Console, seed: int | None = None, force: bool = False,
    resume: bool = False,
) -> CrossesSummary:
    """Searches cross features, encodes the examples with them unless they already hold them, and compares them with
    baselines where that is wanted; `resume` takes up a search that was stopped in the middle."""
    refuse_several("crosses")
    searched, comparison = search_crosses(config, out, console, seed, force, resume)
    if comparison is None:
        return searched
    from models.cross_search import job as cross_job

    with show_progress(console, "crosses and their baselines"):
        return cross_job.compare(comparison)


def search_crosses(
    config: Config, out: Artifacts, console: Console, seed: int | None = None, force: bool = False,
    resume: bool = False, lane: SideLane | None = None, reading: Sequence[Future[Any]] = (),
) -> tuple[CrossesSummary, OpenComparison | None]:
    """`run_crosses` without the comparison, for which a `lane` makes meanwhile what it can; examples are written again
    when what is `reading` them is done."""
    need(out.encoding, "sluice features")
    from models.cross_search import job as cross_job
    from pipelines.jobs import feature_job

    beside = None if lane is None else partial(lane.submit, cross_job.compare_ahead)
    with show_progress(console, "crosses") as progress:
        found = cross_job.find_crosses(config, out, seed=seed, on_progress=progress.advance, force=force,
                                       resume=resume, beside=beside)
        for piece in reading:
            piece.result()
    if not feature_job.has_found_crosses(config, out):
        with show_progress(console, "features with crosses"):
            feature_job.encode_again(config, out)
    return found


def run_pretrain(config: Config, out: Artifacts, console: Console, seed: int | None = None) -> PairRatesSummary:
    """Pair rates from the statistics window: graph ▶ vectors and heads ▶ named in the feature spec where they pay."""
    refuse_several("pretrain")
    need(out.encoding, "sluice features")
    from models.jobs.pair_rate_choice import choose_pair_rates
    from models.pair_rates import job as pretrain_job
    from pipelines.jobs import pair_job

    with show_progress(console, "pretrain") as progress:
        progress.note("graph")
        graph = pair_job.write_pair_graph(config, out)
        found = pretrain_job.pretrain(config, out, graph, seed=seed, on_progress=progress.advance)
        return choose_pair_rates(config, out, found, seed, progress.advance)


def check_before_training(config: Config, out: Artifacts) -> torch.device:
    """Where `sluice train` computes. Raises DataError without examples, ConfigError for a device that is not there."""
    need(out.encoding, "sluice features")
    from models.distributed.data_parallel import resolve_device

    return resolve_device(config.train.device)


def run_train(
    config: Config, out: Artifacts, console: Console, seed: int | None = None,
    warm_start: WarmStartSource | None = None, resume: bool = False, lane: SideLane | None = None,
    then: Callable[[], object] = lambda: None,
) -> TrainSummary:
    """Every configured ranker, the two towers and further channels with their quotas; `warm_start` None starts from
    nothing, `resume` takes up what was stopped in the middle. Under torchrun the first process alone speaks. With a
    `lane` models are trained in its process as well; `then` may give it what it goes on with."""
    console = console if is_first() else Console(quiet=True)
    device = check_before_training(config, out)
    from models.distributed import data_parallel
    from models.jobs import train_job
    from models.training.warm_start import Parent
    from sluice.release.warm_parent import parent_of
    from sluice.report.tables import print_cold_starts
    from sluice.run.side_training import train_in_two

    data_parallel.join(device)
    found = data_parallel.by_first(lambda: str(parent_of(config, out, warm_start) or "") if warm_start else "")
    parent = Parent.read(Path(found)) if found else None
    with show_progress(console, "train") as progress:
        if lane is not None:
            train_in_two(lane, config, out, seed, parent, progress.advance, then)
        made = train_job.train_models(config, out, seed=seed, on_progress=progress.advance, parent=parent,
                                      resume=resume)
    print_cold_starts(made, console)
    if made.channels and is_first():
        choose_channel_quotas(config, out, console, seed)
    return made


def choose_channel_quotas(config: Config, out: Artifacts, console: Console, seed: int | None = None) -> None:
    """Of `retrieve.channels`, by the validation window, for `sluice bundle` to take."""
    from sluice.report.tables import print_channels
    from sluice.run.channel_quotas import choose_quotas

    with show_progress(console, "channels") as progress:
        found = choose_quotas(config, out, config.seed if seed is None else seed, progress.advance)
    print_channels(found, console)


def run_tune(
    path: Path, config: Config, out: Artifacts, console: Console, *, budget: int, trials: int | None = None,
    models: Sequence[str] = (), processes: int | None = None, seed: int | None = None,
) -> TuneSummary:
    """Searches settings of rankers for the configuration of the file `path`; `budget` in seconds."""
    refuse_several("tune")
    need(out.encoding, "sluice features")
    if importlib.util.find_spec("optuna") is None:
        raise ConfigError("Optuna, which searches settings, is not installed; install sluice[tuning] to have it")
    from models.tuning import job as tune_job

    with show_progress(console, "tune") as progress:
        return tune_job.tune(
            config, path.read_text(encoding="utf-8"), out, budget=budget, trials=trials, models=models,
            processes=processes, seed=seed, on_progress=progress.advance)


def run_prerank(
    config: Config, out: Artifacts, console: Console, costs: Path | None = None, seed: int | None = None,
    force: bool = False,
) -> PrerankSummary:
    """Chooses the pre-ranker's fields; `costs` is a file of `sluice measure-costs`, None the configured costs."""
    refuse_several("prerank")
    need(out.out / "models", "sluice train")
    from sluice.run.prerank_job import choose_pre_ranker

    with show_progress(console, "prerank") as progress:
        return choose_pre_ranker(config, out, costs, seed, progress.advance, force)


def run_federate(
    config: Config, data: str | Path | None, out: Artifacts, console: Console, until: str | None = None,
    memory: Path | None = None,
) -> RunSummary:
    """Users of the log as clients: features ▶ rounds of every setting ▶ a bundle of the served one."""
    refuse_several("federate")
    from federated.jobs import federate_job

    if not out.encoding.exists():
        run_features(config, data, out, console, until=until)
    with show_progress(console, "federate") as progress:
        made = federate_job.federate(config, out, progress.advance, memory=memory)
    parts = Artifacts(out.out / federate_job.FOLDER / "parts")
    run = RunSummary(name=config.name, federated=made.federated, settings=made.settings, clients=made.clients,
                     seconds=made.seconds, bundle=build_bundle(federate_job.served_config(config), parts, console, out))
    summary.write(out.out, run)
    return run


def run_deployed(config: Config, setting: str, out: Artifacts, console: Console) -> RunSummary:
    """What `flwr run .` trained and counted in OUT/federated -> a bundle."""
    from federated.jobs import federate_job

    parts = federate_job.deployed_parts(config, out, setting)
    led = summary.required(out.out / "federated" / "runs" / f"{setting}-flower", ServerAppSummary, "flwr run .")
    run = RunSummary(name=config.name, deployed={setting: led},
                     bundle=build_bundle(federate_job.served_config(config), parts, console, out))
    summary.write(out.out, run)
    return run


def run_all(
    config: Config, data: str | Path | None, out: Artifacts, console: Console, seed: int | None = None,
    warm_start: WarmStartSource | None = None, resume: bool = False,
) -> RunSummary:
    """Features ▶ crosses ▶ features with crosses ▶ pretrain ▶ train ▶ prerank ▶ bundle; `resume`: by checkpoints."""
    refuse_several("run")
    started = time.perf_counter()
    trained = run_to_models(config, data, out, console, seed, warm_start, resume=resume)
    run = run_to_bundle(config, out, console, trained, seed)
    run = run.model_copy(update={"seconds": round(time.perf_counter() - started, 1)})
    summary.write(out.out, run)
    return run


def run_to_models(
    config: Config, data: str | Path | None, out: Artifacts, console: Console, seed: int | None = None,
    warm_start: WarmStartSource | None = None, resume: bool = False,
) -> RunSummary:
    """The part of a run up to its trained models."""
    features, leaks = run_features(config, data, out, console)
    crosses = None
    if config.crosses.budget:
        try:
            crosses = run_crosses(config, out, console, seed, resume=resume)
            features = summary.required(out.features, FeaturesSummary, "sluice features")
        except NothingToCrossError as error:
            console.print(f"The run goes on without crosses: {error}.", highlight=False, markup=False)
    pretrained = run_pretrain(config, out, console, seed)
    trained = run_train(config, out, console, seed, warm_start, resume)
    return RunSummary(name=config.name, features=features, leaks=leaks, crosses=crosses, pretrain=pretrained,
                      models=trained.models, ranker=trained.ranker, train=trained)


def run_to_bundle(
    config: Config, out: Artifacts, console: Console, trained: RunSummary, seed: int | None = None
) -> RunSummary:
    """The rest of a run whose models are `trained`."""
    prerank = run_prerank(config, out, console, seed=seed) if config.prerank_kind == "fscd" else None
    channels = trained.train is not None and trained.train.channels
    return trained.model_copy(update={
        "prerank": prerank, "retrieval": summary.read(out.channels, ChannelsSummary) if channels else None,
        "bundle": build_bundle(config, out, console), "skipped": skipped(config),
    })


def skipped(config: Config) -> dict[str, str]:
    """What a run leaves out because its log has no times, users or items, or as configured: name -> reason and cure."""
    log, reasons = config.log, {}
    if log.event_time is None:
        reasons["split_in_time"] = NO_TIMES
    if log.user_id is None:
        reasons |= dict.fromkeys(("gauc", "online_users"), NO_USERS)
    if log.item_id is None:
        reasons |= dict.fromkeys(("online_items", "two_tower", "pre_ranker", "item_index", "serving"), NO_ITEMS)
    if not config.crosses.budget:
        reasons["crosses"] = NO_CROSSES
    if not config.pair_rates.pairs or config.pair_rates.model == "none":
        reasons["pair_rates"] = NO_PAIR_MODEL if config.pair_rates.pairs else NO_PAIRS
    if config.prerank_kind != "fscd":
        reasons["prerank"] = NO_ITEMS if log.item_id is None else NO_REQUESTS if log.event_time is None else NO_CHOICE
    return reasons
