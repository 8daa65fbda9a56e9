"""What each pre-ranker takes on the server's own path. Reported beside the quality; it never decides."""

from __future__ import annotations

from collections.abc import Sequence

from contracts.summaries.prerank import PreRankChoice
from models.preranking.fscd import Fscd
from models.preranking.fscd_scorer import FscdSplit
from models.preranking.job import Outcome
from serving.assembly.item_vectors import item_part
from serving.bundle.loaded_bundle import LoadedBundle
from serving.replay import funnel_timing
from serving.replay.past_requests import PastRequest
from serving.request.query import RankQuery
from serving.stages.prerank_scorers import DotProductScorer, FscdScorer, Scorer

REPETITIONS = 100


def with_times(
    figures: PreRankChoice, outcome: Outcome, loaded: LoadedBundle, requests: Sequence[PastRequest]
) -> PreRankChoice:
    """The figures with us_per_1000 in the frontier, and us_per_1000 and funnel_ms in the three compared."""
    item_side = figures.item_side
    dot, best = DotProductScorer(loaded, loaded.prerank_calibration), fscd_scorer(loaded, outcome.network, item_side)
    points: dict[str, Scorer] = {
        str(number): fscd_scorer(loaded, point.network, item_side) for number, point in enumerate(outcome.points)
    }
    scorers: dict[str, Scorer] = {"fscd": best, "dot_product": dot, **points}
    stage = funnel_timing.stage_microseconds(loaded, scorers, list(requests), REPETITIONS)
    whole = funnel_timing.funnel_milliseconds(loaded, {"fscd": best, "dot_product": dot}, queries(loaded), REPETITIONS)
    compared = {name: getattr(figures, name).model_copy(update={"us_per_1000": stage[name], "funnel_ms": whole[name]})
                for name in whole}
    frontier = tuple(point.model_copy(update={"us_per_1000": stage[str(number)]})
                     for number, point in enumerate(figures.frontier))
    return figures.model_copy(update={**compared, "frontier": frontier})


def queries(loaded: LoadedBundle) -> list[RankQuery]:
    """One of each of the first users, or of an unknown one where the bundle has none."""
    users = [loaded.users.key(row) for row in range(min(len(loaded.users), REPETITIONS))] or [""]
    return [RankQuery(user=user, limit=loaded.settings.serve.default_limit, explain=False) for user in users]


def fscd_scorer(loaded: LoadedBundle, network: Fscd, item_side: str) -> FscdScorer:
    """As the server would score with it: what items add to the first layer is stored, or computed per request."""
    split = FscdSplit(network, network.kept_fields)
    stored = item_part(split, loaded.items) if item_side == "precomputed" else None
    return FscdScorer(loaded, split, stored, loaded.prerank_calibration)
