"""Figures of `sluice train`: the whole step (OUT/models) and each trained model (OUT/models/NAME); and of `sluice tune`
(OUT/tuning): what was tried, what was found, and what it gains.

AUCs, GAUC and NDCG lie in [0, 1], losses are in nats per example, seconds are wall-clock.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from contracts.summaries.summary import Record, Summary

SettingValue = bool | int | float | str | tuple[int, ...] | None


class EpochFigures(Record):
    """One pass over the training window, numbered from 1; losses are means per term, the learning rate is that of the
    end. AUC and GAUC are None where they are not defined or nothing asks for them."""

    epoch: int
    train_loss: float
    validation_loss: float
    seconds: float
    validation_auc: float | None = None
    validation_gauc: float | None = None
    learning_rate: float | None = None


class WarmStartFigures(Record):
    """What a model took over from `parent`, a bundle's version: rows of the embedding, and the layers that did not.
    `cold`: the sentence that says why nothing was, where vectors or hidden layers have another shape, or the network
    another structure."""

    parent: str
    rows: int
    rows_carried: int
    anew: tuple[str, ...]
    cold: str | None = None


class FitFigures(Record):
    """How training went. `digest` names all that the weights depend on; `warm_start` is None where no bundle had it."""

    seconds: float
    rows_per_second: float
    epochs: int
    best_epoch: int
    history: tuple[EpochFigures, ...]
    warm_start: WarmStartFigures | None = None
    digest: str | None = None


class RocCurve(Record):
    """Points from (0, 0) to (1, 1)."""

    false_positive_rate: tuple[float, ...]
    true_positive_rate: tuple[float, ...]


class ReliabilityCurve(Record):
    """Bins of about equal mass, in order of the mean predicted probability."""

    predicted: tuple[float, ...]
    observed: tuple[float, ...]
    rows: tuple[int, ...]


class Curves(Record):
    """What the plots of one model are drawn from."""

    roc: RocCurve
    reliability: ReliabilityCurve


class CalibratedFigures(Record):
    """A model on the test window. `predicted_over_observed` is None without a positive."""

    auc: float
    log_loss: float
    ece: float
    predicted_over_observed: float | None = None


class EvaluationFigures(CalibratedFigures):
    """A ranker on the test window. Figures by user are None without users; `gauc_skipped` users have one class."""

    gauc: float | None = None
    gauc_users: int
    gauc_skipped: int
    ndcg_10: float | None = None
    rows: int
    positives: int
    curves: Curves | None = None


class PositionFigures(Record):
    """Rows shown at one position. `ratio`: predicted over observed clicks, None without a click."""

    ratio: float | None = None
    rows: int
    positives: int


class SliceFigures(Record):
    """Some rows of the test window. AUC and GAUC are None where they are not defined."""

    rows: int
    positives: int
    auc: float | None = None
    gauc: float | None = None


class RankerSummary(EvaluationFigures, FitFigures, Summary):
    """One ranker. `ece_uncalibrated`: of the network's own probabilities; `position_bias` in logits, position 1 first;
    `auc_standard_error` by the bootstrap over users; `by_novelty`: "known users", "new users" and so on."""

    auc_standard_error: float
    ece_uncalibrated: float
    validation_auc: float
    by_position: dict[str, PositionFigures] | None = None
    by_novelty: dict[str, SliceFigures] = Field({})
    position_bias: tuple[float, ...]


class TowerRecall(Record):
    """Share of the test window's clicks whose item is among the k best of the catalogue; `_if_shown_alike`: of clicks
    weighted by 1 / impressions of their item, since clicks follow what was shown and the towers correct for that."""

    two_tower: float
    popularity: float
    two_tower_if_shown_alike: float | None = None
    popularity_if_shown_alike: float | None = None


class ColdRecall(Record):
    """Shares of `clicks` of the validation window, asked for without their users, that are among `k` candidates; of new
    users' clicks, or of all. `better` by one standard error (models/evaluation/cold_recall.py)."""

    clicks: int
    new_users: bool
    k: int
    two_tower: float
    popularity: float
    better: Literal["two_tower", "popularity"]


class TowerSummary(CalibratedFigures, FitFigures, Summary):
    """The two towers. `recall`: k -> shares, None where no test click is on a known item; `catalogue` counts items;
    `cold`: what is better for those of whom nothing is known, None where the log has no users."""

    cold: ColdRecall | None = None
    recall: dict[str, TowerRecall] | None = None
    catalogue: int
    clicks: int


class PreRankRecall(Record):
    """Shares of the clicks that are `retrieved` among `candidates`, and `kept` among the best `keep` of those."""

    candidates: int
    keep: int
    retrieved: float
    kept: float


class PreRankerSummary(CalibratedFigures, FitFigures, Summary):
    """The towers' pre-ranker; `recall` is None where no test click is on a known item."""

    recall: PreRankRecall | None = None
    clicks: int


class ChannelSummary(Summary):
    """A channel of `retrieve.channels`, trained on `actions` of `users` with `items`; full ranking of the validation
    window's actions, seen items left out. `rounds`: epochs until the best. Coverage is a share of the items, novelty in
    bits (models/evaluation/full_ranking.py); `recall_by`: kind of slice -> slice -> Recall@10. Runs of before they were
    measured lack them. `warm_start` is None after a cold start."""

    seconds: float
    rows_per_second: float
    rounds: int
    actions: int
    users: int
    items: int
    validation_targets: int
    recall_at_10: float
    recall_at_100: float
    ndcg_at_10: float
    mrr: float | None = None
    coverage_at_10: float | None = None
    novelty_at_10: float | None = None
    recall_by: dict[str, dict[str, float]] = Field({})
    digest: str | None = None
    warm_start: WarmStartFigures | None = None


class AgeRecall(Record):
    """Shares of the `clicks` on items of one age."""

    clicks: int
    mixed: float
    alone: dict[str, float]


class ChannelRecall(Record):
    """Shares of the test window's clicks found among so many candidates: of each channel `alone`, and `mixed` by
    `quotas`, which validation chose. None where no test click is on a known item. `by_age`: age of the item when it was
    clicked -> the same shares; new is what nobody had taken before the validation window."""

    quotas: dict[str, int]
    mixed: float | None
    alone: dict[str, float | None]
    by_age: dict[str, AgeRecall] = Field({})


class ChannelsSummary(Summary):
    """OUT/channels/summary.json. `quotas` go into the bundle, `chosen_by` what validation clicked, or what the ranker
    would show of it; `recall`: number of candidates, as text -> shares."""

    quotas: dict[str, int]
    chosen_by: Literal["clicks", "slates"] = "clicks"
    validation_clicks: int
    test_clicks: int
    recall: dict[str, ChannelRecall]


class LightgbmSummary(Summary):
    """LightGBM on `rows` rows of the training window, beside the models; `gauc` is None without users."""

    name: str
    auc: float
    gauc: float | None = None
    validation_auc: float
    rows: int
    seconds: float
    digest: str | None = None


class FreshnessFigures(Record):
    """The ranker on one kind of features."""

    auc: float
    auc_standard_error: float
    gauc: float | None = None
    log_loss: float


class Freshness(Record):
    """The same ranker on features as of the last publish, and on event-fresh ones."""

    published: FreshnessFigures
    fresh: FreshnessFigures


class BucketFigures(Record):
    """Test rows whose pair was seen about equally often; `auc` is None where their labels are of one class."""

    rows: int
    positives: int
    auc: float | None = None


CoOccurrence = dict[str, dict[str, dict[str, BucketFigures]]]  # by pair rate, model, bucket


class TrainSummary(Summary):
    """OUT/models/summary.json. A federated run names its `ranker` alone.

    `ranker_reason` says in a sentence why it is served. `models` are without `curves` and `digest`, which lie in each
    model's own summary. `co_occurrence`: pair-rate feature -> model ("statistic": the predicted rate alone) -> bucket
    of impressions -> figures. `outside`: LightGBM. `parent`: version of the bundle that training started from.
    """

    ranker: str
    ranker_reason: str | None = None
    models: dict[str, RankerSummary] = Field({})
    two_tower: TowerSummary | None = None
    pre_ranker: PreRankerSummary | None = None
    channels: dict[str, ChannelSummary] = Field({})
    freshness: Freshness | None = None
    co_occurrence: CoOccurrence = Field({})
    outside: LightgbmSummary | None = None
    seed: int | None = None
    parent: str | None = None
    seconds: float | None = None


class TrialFigures(Record):
    """One training. `score` is None where it came to no epoch; `settings` are those of `[train]` that were searched;
    `configured`: as the configuration says; `error`: why it failed."""

    number: int
    model: str | None = None
    state: Literal["complete", "pruned", "failed"]
    score: float | None = None
    epochs: int
    seconds: float | None = None
    configured: bool = False
    settings: dict[str, SettingValue] = Field({})
    error: str | None = None


class TuneSummary(Summary):
    """OUT/tuning/summary.json. A score is the validation figure that `train.monitor` names, the larger the better: AUC,
    GAUC, or the log loss with its sign turned. Scores of `best` and `configured` are on the half of the validation
    window that stops training, `gain` on the other half, which no trial has seen.

    `adopted`: whether the gain is more than its standard error, so that `settings` went into the file `written`.
    `importances`: setting -> share of the scores' variance that it explains, empty after too few trials.
    """

    monitor: str
    best: TrialFigures
    configured: TrialFigures
    gain: float
    gain_standard_error: float
    adopted: bool
    reason: str
    settings: dict[str, SettingValue]
    importances: dict[str, float]
    trials: tuple[TrialFigures, ...]
    rows: int
    written: str
    seconds: float
