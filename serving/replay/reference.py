"""What the bundle would show to requests of the validation window, and what it was trained on, for drift in serving.

A slate depends on the bundle as much as on who asks, so that shown items and their probabilities are held against the
bundle's own slates for validation's requests: the difference is then of the requests, and not of the selection.

Sequences and counters grow with the log until their windows are full, whoever asks: at the end of a short log they are
not those of its training window, and that is no news of a request. So a sequence is held against those that the
bundle's table has for validation's users, and a counter against validation's rows: in the table, whoever has come in
its window has been counted. How far they are from training's is a figure of the bundle (`grown`).
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from contracts import windows
from contracts.artifacts import USER, Artifacts
from contracts.bundle.bundle import SCHEMA_VERSION, Manifest
from contracts.bundle.reference import Reference
from contracts.config.config import Config
from contracts.features.drift import ColumnProfile, field_psi
from contracts.features.encoded_profiles import encoded_profiles, numbers_profile
from contracts.features.encoding import Encoded
from contracts.features.feature_spec import FeatureSpec
from contracts.progress import counted, report
from contracts.windows import TimedWindows
from models.examples.batches import ExampleSet
from models.inference import split_ranker
from serving.bundle.loaded_bundle import LoadedBundle
from serving.replay import past_requests
from serving.request.deadline import Deadline
from serving.request.query import RankQuery
from serving.request.request_features import Requester
from serving.stages.funnel import Funnel

ROWS, REQUESTS = 50_000, 400
GROUPS = 64  # of rows, that a window's sample is read from
NOBODY, LATE = np.empty(0, dtype=np.int32), Deadline(None)


class Slates(NamedTuple):
    """`rows` of the shown items and their calibrated `probability`, of all slates one after the other."""

    rows: np.ndarray
    probability: np.ndarray


class Histories(NamedTuple):
    """Profiles of the fields that grow with the log, each of so many rows."""

    fields: dict[str, ColumnProfile]
    rows: int


def write_reference(config: Config, out: Artifacts, build: Path) -> dict[str, float]:
    """`build` is complete but for this. Nothing where a window has no examples, or the bundle no items; no field that
    is made from the clock, for the requests of some hours never have the hours of all days.

    Returns how far each field that grows with the log is from its values in training, as PSI."""
    spec = FeatureSpec.read(out.encoding)
    folders = [out.examples(name) for name in ("train", "validation")]
    if not spec.has_items or not all(any(folder.glob("day=*/*.parquet")) for folder in folders):
        return {}
    unsealed = Manifest(schema_version=SCHEMA_VERSION, name="reference", content_hash="0" * 64,
                        created=datetime.now(UTC), files={})
    bundle = LoadedBundle.read(build, unsealed, check_parity=False)
    report("rows of training")
    trained = _spread(out, spec, "train", ROWS, config.seed).inputs
    slates = _slates(bundle, _requests(config, out, bundle))
    items = Encoded(np.asarray(bundle.items.ids)[slates.rows], np.asarray(bundle.items.dense)[slates.rows])
    fields = encoded_profiles(spec, ("user", "context"), trained) | encoded_profiles(spec, ("item",), items)
    clock = {field.name for field in config.fields if field.source_column in config.log.clock_columns}
    fields = {name: profile for name, profile in fields.items() if name not in clock}
    grown = _histories(bundle, out, config.seed)
    made = Reference(rows=len(trained.ids), shown=len(slates.rows), fields=fields | grown.fields,
                     scores=numbers_profile(slates.probability), calibration=_calibration(bundle, out, config.seed),
                     histories=dict.fromkeys(grown.fields, grown.rows))
    made.write(build)
    return {name: float(f"{field_psi(now, grown.rows, fields[name], made.rows):.4g}")
            for name, now in grown.fields.items()}


def _histories(bundle: LoadedBundle, out: Artifacts, seed: int) -> Histories:
    """Of the validation window; as its rows have them where nothing says whose they are."""
    spec = bundle.spec
    rows, inputs = _spread(out, spec, "validation", ROWS, seed)
    kinds = {field.name: field.kind for field in spec.of_side("user", "context")}
    fields = encoded_profiles(spec, ("user", "context"), inputs)
    if spec.has_users and _is_replayable(out):
        table = bundle.users.rows(past_requests.log_rows(out, "validation", rows, spec)[USER].to_pylist())
        known = Encoded(np.asarray(bundle.users.ids)[table], np.asarray(bundle.users.dense)[table])
        fields |= {name: profile for name, profile in encoded_profiles(spec, ("user",), known).items()
                   if kinds[name] == "sequence"}
    return Histories({name: profile for name, profile in fields.items() if kinds[name] in ("sequence", "counter")},
                     len(rows))


def _is_replayable(out: Artifacts) -> bool:
    """Whether it is known who asked, and when."""
    return isinstance(windows.read(out.windows), TimedWindows) and out.features.exists()


def _spread(out: Artifacts, spec: FeatureSpec, name: str, count: int, seed: int) -> past_requests.PastInputs:
    """Of `count` rows, drawn from row groups of the whole window."""
    examples = ExampleSet(out.examples(name), spec)
    examples.groups = examples.groups[:: -(-len(examples.groups) // GROUPS)]
    rows = sum(group.rows for group in examples.groups)
    return past_requests.request_inputs(examples, np.sort(np.random.default_rng(seed).permutation(rows)[:count]))


def _requests(config: Config, out: Artifacts, bundle: LoadedBundle) -> list[Requester]:
    """Of the validation window, with what their users had clicked by then where the log has times, and its raw
    features are there."""
    if _is_replayable(out):
        publish_every = 0 if config.retrieve.fresh_requests else config.features.publish_every
        asked = past_requests.sample(out, bundle.spec, bundle.items, "validation", REQUESTS, 0, publish_every,
                                     np.random.default_rng(config.seed), bundle.told)
        return [request.requester for request in asked]
    inputs = _spread(out, bundle.spec, "validation", REQUESTS, config.seed).inputs
    return [Requester(True, Encoded(inputs.ids[n : n + 1], inputs.dense[n : n + 1]), NOBODY)
            for n in range(len(inputs.ids))]


@torch.inference_mode()
def _slates(bundle: LoadedBundle, requests: list[Requester]) -> Slates:
    stages = Funnel(bundle).stages
    limit, by_value = bundle.settings.serve.default_limit, stages.rerank.kind == "auction"
    rows, probabilities = [NOBODY.astype(np.int64)], [np.empty(0)]
    for requester in counted("slates of past requests", requests):
        vector = stages.user_tower(requester.inputs)
        found = stages.retrieval.run(RankQuery(user="", limit=limit), requester, vector, by_value).candidates
        kept = stages.prerank.run(found, requester, vector, by_value, limit, LATE).candidates
        ranked = stages.rank.run(kept, requester, by_value, limit, LATE).candidates
        slate = stages.rerank.run(ranked, limit, True, LATE)
        rows.append(slate.candidates.rows)
        probabilities.append(slate.probability)
    return Slates(np.concatenate(rows), np.concatenate(probabilities))


def _calibration(bundle: LoadedBundle, out: Artifacts, seed: int) -> float | None:
    """Of the validation window at the first position, as the server promises, rounded to what is the same on every
    machine; None without a click, or where negatives were drawn."""
    examples = ExampleSet(out.examples("validation"), bundle.spec)
    rows = next(examples.batches(min(examples.rows, ROWS), shuffle=True, seed=seed))
    clicks = float(rows.label.sum())
    if not clicks or rows.log_draws is not None:
        return None
    served = split_ranker.of(bundle.ranker)
    request, candidate = (Encoded(part.ids.numpy(), part.dense.numpy()) for part in (rows.request, rows.candidate))
    logits = served.logits(served.begin(request), candidate)
    return float(f"{float(bundle.calibration.apply(logits).sum()) / clicks:.6g}")
