"""What the bundle would show to requests of the validation window, and what it was trained on, for drift in serving.

A slate depends on the bundle as much as on who asks, so that shown items and their probabilities are held against the
bundle's own slates for validation's requests: the difference is then of the requests, and not of the selection.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from contracts.artifacts import Artifacts
from contracts.bundle.bundle import SCHEMA_VERSION, Manifest
from contracts.bundle.reference import Reference
from contracts.config.config import Config
from contracts.features.encoded_profiles import encoded_profiles, numbers_profile
from contracts.features.encoding import Encoded
from contracts.features.feature_spec import FeatureSpec
from models.examples.batches import Batch, ExampleSet, FeatureBlock
from models.inference import split_ranker
from serving.bundle.loaded_bundle import LoadedBundle
from serving.request.deadline import Deadline
from serving.request.query import RankQuery
from serving.request.request_features import Requester
from serving.stages.funnel import Funnel

ROWS, REQUESTS = 50_000, 400
NOBODY, LATE = np.empty(0, dtype=np.int32), Deadline(None)


class Slates(NamedTuple):
    """`rows` of the shown items and their calibrated `probability`, of all slates one after the other."""

    rows: np.ndarray
    probability: np.ndarray


def write_reference(config: Config, out: Artifacts, build: Path, spec: FeatureSpec) -> None:
    """`build` is complete but for this. Nothing where a window has no examples; no field that is made from the clock,
    for the requests of some hours never have the hours of all days."""
    if not all(any(out.examples(name).glob("day=*/*.parquet")) for name in ("train", "validation")):
        return
    unsealed = Manifest(schema_version=SCHEMA_VERSION, name="reference", content_hash="0" * 64,
                        created=datetime.now(UTC), files={})
    bundle = LoadedBundle.read(build, unsealed, check_parity=False)
    trained, validation = (_sample(out, spec, name, config.seed) for name in ("train", "validation"))
    slates = _slates(bundle, _encoded(validation.request))
    items = Encoded(np.asarray(bundle.items.ids)[slates.rows], np.asarray(bundle.items.dense)[slates.rows])
    fields = (encoded_profiles(spec, ("user", "context"), _encoded(trained.request))
              | encoded_profiles(spec, ("item",), items))
    clock = {field.name for field in config.fields if field.source_column in config.log.clock_columns}
    fields = {name: profile for name, profile in fields.items() if name not in clock}
    Reference(rows=len(trained.label), shown=len(slates.rows), fields=fields,
              scores=numbers_profile(slates.probability), calibration=_calibration(bundle, validation)).write(build)


def _sample(out: Artifacts, spec: FeatureSpec, name: str, seed: int) -> Batch:
    examples = ExampleSet(out.examples(name), spec)
    return next(examples.batches(min(examples.rows, ROWS), shuffle=True, seed=seed))


def _encoded(block: FeatureBlock) -> Encoded:
    return Encoded(block.ids.numpy(), block.dense.numpy())


@torch.inference_mode()
def _slates(bundle: LoadedBundle, requests: Encoded) -> Slates:
    """Of the first REQUESTS."""
    stages = Funnel(bundle).stages
    limit, by_value = bundle.settings.serve.default_limit, stages.rerank.kind == "auction"
    rows, probabilities = [NOBODY.astype(np.int64)], [np.empty(0)]
    for n in range(min(len(requests.ids), REQUESTS)):
        requester = Requester(True, Encoded(requests.ids[n : n + 1], requests.dense[n : n + 1]), NOBODY)
        vector = stages.user_tower(requester.inputs)
        found = stages.retrieval.run(RankQuery(user="", limit=limit), requester, vector, by_value).candidates
        kept = stages.prerank.run(found, requester, vector, by_value, limit, LATE).candidates
        ranked = stages.rank.run(kept, requester, by_value, limit, LATE).candidates
        slate = stages.rerank.run(ranked, limit, True, LATE)
        rows.append(slate.candidates.rows)
        probabilities.append(slate.probability)
    return Slates(np.concatenate(rows), np.concatenate(probabilities))


def _calibration(bundle: LoadedBundle, rows: Batch) -> float | None:
    """At the first position, as the server promises, rounded to what is the same on every machine; None without a
    click, or where negatives were drawn."""
    clicks = float(rows.label.sum())
    if not clicks or rows.log_draws is not None:
        return None
    served = split_ranker.of(bundle.ranker)
    logits = served.logits(served.begin(_encoded(rows.request)), _encoded(rows.candidate))
    return float(f"{float(bundle.calibration.apply(logits).sum()) / clicks:.6g}")
