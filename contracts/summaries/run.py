"""OUT/summary.json: what the jobs of a run said, together, and what a demo or a federated run adds to them."""

from __future__ import annotations

from contracts.summaries.bundle import BundleSummary, ParityFigures
from contracts.summaries.crosses import CrossesSummary
from contracts.summaries.days import PlatformDay
from contracts.summaries.demo import CrossEvaluation, PairRateEvaluation, PreRankSlates, ServingFigures, SlateEvaluation
from contracts.summaries.features import FeaturesSummary
from contracts.summaries.federated import FederatedFigures, ServerAppSummary, SettingFigures
from contracts.summaries.leaks import LeaksSummary
from contracts.summaries.marketplace import SimulatedLog
from contracts.summaries.pair_rates import PairRatesSummary
from contracts.summaries.prerank import PrerankSummary
from contracts.summaries.summary import Summary
from contracts.summaries.train import ChannelsSummary, RankerSummary, TrainSummary


class EvaluatedRanker(RankerSummary):
    """`share_of_oracle` = (AUC - 0.5) / (oracle's AUC - 0.5)."""

    oracle_auc: float
    share_of_oracle: float


class EvaluatedCrosses(CrossesSummary, CrossEvaluation):
    """The search, and how much of what the marketplace planted it found."""


class EvaluatedPrerank(PrerankSummary):
    """`decoys_kept`: how many of the fields that the marketplace plants to be dropped are still there."""

    decoys_kept: int
    slates: PreRankSlates


class RunSummary(Summary):
    """What was not done is None.

    `models` and `ranker` are those of `train`; `skipped` is what the log or the configuration leaves out, by name, each
    with its reason and cure. `federated`, `settings` and `clients` are of federated rounds, `deployed` of those that a
    Flower ServerApp led, by setting; `simulation` to `marketplace_version` of a demo on the simulated marketplace,
    where the models, the crosses and the pre-ranker are also compared with its truth; `days` of the benchmark of
    drifting tastes.
    """

    name: str
    features: FeaturesSummary | None = None
    leaks: LeaksSummary | None = None
    crosses: EvaluatedCrosses | CrossesSummary | None = None
    pretrain: PairRatesSummary | None = None
    models: dict[str, EvaluatedRanker | RankerSummary] | None = None
    ranker: str | None = None
    train: TrainSummary | None = None
    retrieval: ChannelsSummary | None = None
    prerank: EvaluatedPrerank | PrerankSummary | None = None
    bundle: BundleSummary | None = None
    skipped: dict[str, str] | None = None
    federated: FederatedFigures | None = None
    settings: dict[str, SettingFigures] | None = None
    clients: int | None = None
    deployed: dict[str, ServerAppSummary] | None = None
    simulation: SimulatedLog | None = None
    slate: SlateEvaluation | None = None
    serving: ServingFigures | None = None
    pair_rates: PairRateEvaluation | None = None
    parity: ParityFigures | None = None
    marketplace_version: str | None = None
    days: tuple[PlatformDay, ...] | None = None
    seconds: float | None = None
