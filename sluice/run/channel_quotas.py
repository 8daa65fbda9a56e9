"""Quotas of retrieval's channels, chosen on the validation window; what each channel and their mix find.

They are chosen by what was clicked; where bids count, by what the ranker would show
(serving/replay/shown_items.py). Both are asked of a bundle with the items as the validation window found them, whose
counters know none of its clicks, and quotas are judged by the clicks of the test window, with the items as that found
them. OUT/channels/summary.json says what was found;
`sluice bundle` takes its quotas.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from contracts.artifacts import Artifacts
from contracts.config.config import Config
from contracts.features.feature_spec import FeatureSpec
from contracts.progress import OnProgress
from contracts.summaries import summary
from contracts.summaries.train import AgeRecall, ChannelRecall, ChannelsSummary
from models.evaluation.full_ranking import Slices
from serving.bundle.loaded_bundle import LoadedBundle
from serving.replay import channel_recall, item_age, item_snapshot, past_requests, shown_items
from serving.replay.past_requests import PastRequest
from sluice.run.prerank_candidates import snapshot_bundle

CLICKS = 1000  # of each window
VISITS = 300  # of validation, for which the ranker orders what the channels bring
SHORT = 100  # candidates of a second, shorter list


def choose_quotas(config: Config, out: Artifacts, seed: int, on_progress: OnProgress) -> ChannelsSummary:
    """Writes and returns OUT/channels/summary.json."""
    spec, draw = FeatureSpec.read(out.encoding), np.random.default_rng(seed)
    (out.channels / summary.FILE).unlink(missing_ok=True)
    bundle = _as_found_by("validation", config, out, spec, on_progress)
    validation_clicks = _clicks(config, out, spec, bundle, "validation", draw)
    on_progress("validation", 0, 1)
    wanted, worth = _wanted(config, out, spec, bundle, validation_clicks, draw)
    bundle = _as_found_by("test", config, out, spec, on_progress)
    clicks = _clicks(config, out, spec, bundle, "test", draw)
    on_progress("clicks of test", 0, 1)
    test = channel_recall.ranks(bundle, clicks)
    ages = item_age.age_slices(out, bundle.items, clicks)
    candidates = config.retrieve.candidates
    quotas = {k: channel_recall.choose(wanted, config.retrieve, k, worth) for k in {min(SHORT, candidates), candidates}}
    made = ChannelsSummary(
        quotas=quotas[candidates], chosen_by="clicks" if worth is None else "slates",
        validation_clicks=len(validation_clicks), test_clicks=len(clicks),
        recall={str(k): _recall(bundle, clicks, test, ages, chosen, k) for k, chosen in sorted(quotas.items())})
    summary.write(out.channels, made)
    return made


def _as_found_by(
    window: str, config: Config, out: Artifacts, spec: FeatureSpec, on_progress: OnProgress
) -> LoadedBundle:
    on_progress(f"bundle as {window} found it", 0, 1)
    item_snapshot.write(out, spec, window)
    return snapshot_bundle(config, out)


def _wanted(
    config: Config, out: Artifacts, spec: FeatureSpec, bundle: LoadedBundle, clicks: list[PastRequest],
    draw: np.random.Generator,
) -> tuple[channel_recall.Ranks, np.ndarray | None]:
    """What retrieval should find, and what each of it is worth."""
    if not bundle.settings.auction:
        return channel_recall.ranks(bundle, clicks), None
    visits = _sample(config, out, spec, bundle, "validation", (VISITS, 0), draw)
    return shown_items.shown_items(bundle, visits, config.serve.default_limit)


def _clicks(
    config: Config, out: Artifacts, spec: FeatureSpec, bundle: LoadedBundle, window: str, draw: np.random.Generator
) -> list[PastRequest]:
    """Of items that the bundle holds."""
    found = _sample(config, out, spec, bundle, window, (0, CLICKS), draw)
    return [request for request in found if request.clicked >= 0]


def _sample(
    config: Config, out: Artifacts, spec: FeatureSpec, bundle: LoadedBundle, window: str, counts: tuple[int, int],
    draw: np.random.Generator,
) -> list[PastRequest]:
    """So many impressions, and further ones that were clicked."""
    publish_every = 0 if config.retrieve.fresh_requests else config.features.publish_every
    return past_requests.sample(out, spec, bundle.items, window, *counts, publish_every, draw, bundle.told)


def _recall(
    bundle: LoadedBundle, clicks: list[PastRequest], alone: channel_recall.Ranks, ages: Slices, quotas: dict[str, int],
    k: int
) -> ChannelRecall:
    retrieve = bundle.settings.retrieve.model_copy(update={"candidates": k})
    mixed = channel_recall.places(bundle, clicks, channel_recall.with_quotas(retrieve, quotas)) < k
    found = {name: places < k for name, places in alone.items()}
    return ChannelRecall(quotas=quotas, mixed=_share(mixed), alone={name: _share(hits) for name, hits in found.items()},
                         by_age=dict(_by_age(ages, mixed, found)))


def _by_age(ages: Slices, mixed: np.ndarray, alone: dict[str, np.ndarray]) -> Iterator[tuple[str, AgeRecall]]:
    """Of the ages that were clicked."""
    for number, name in enumerate(ages.names):
        of = ages.code == number
        if of.any():
            yield name, AgeRecall(clicks=int(of.sum()), mixed=float(mixed[of].mean()),
                                  alone={channel: float(hits[of].mean()) for channel, hits in alone.items()})


def _share(found: np.ndarray) -> float | None:
    return float(found.mean()) if len(found) else None
