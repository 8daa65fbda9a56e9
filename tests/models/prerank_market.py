"""Candidate lists with a known answer: which fields the ranker needs, which copies one, which are noise."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from contracts.artifacts import LABEL, POSITION, ROW, USER
from contracts.bundle.candidate_lists import CandidateItems, CandidateLists
from contracts.config.stages import Prerank
from contracts.features.feature_spec import FIRST_ID, FeatureField, FeatureSpec
from models.preranking.fscd_training import Sources
from models.preranking.sweep import Task

VALUES, ITEMS, LENGTH = 6, 120, 60
COSTS = {"taste": 1.0, "noise": 0.1, "kind": 1.0, "quality": 1.0, "junk": 1.0, "copy": 20.0}


def spec(positions: int = 0) -> FeatureSpec:
    size = VALUES + FIRST_ID
    fields = [FeatureField(name=name, kind="categorical", side=side, size=size, cost=COSTS[name])  # type: ignore[arg-type]
              for name, side in (("taste", "user"), ("noise", "user"), ("kind", "item"), ("quality", "item"),
                                 ("junk", "item"))]
    copy = FeatureField(name="copy", kind="cross", side="cross", parts=("noise", "kind"), buckets=VALUES, size=size,
                        cost=COSTS["copy"])
    return FeatureSpec(fields=(*fields, copy), has_position=positions > 0, positions=positions)


def lists(items: np.ndarray, requests: int, seed: int) -> CandidateLists:
    """teacher = match of taste and kind + quality; "copy" has the value of "kind"."""
    rng = np.random.default_rng(seed)
    request = rng.integers(FIRST_ID, VALUES + FIRST_ID, (requests, 2)).astype(np.int32)
    rows = np.stack([rng.permutation(ITEMS)[:LENGTH] for _ in range(requests)]).astype(np.int32)
    kind, quality = items[rows, 0], items[rows, 1]
    teacher = _teacher(request[:, :1], kind, quality)
    clicked = rng.random(rows.shape) < 0.02
    empty = np.zeros((requests, LENGTH, 0), dtype=np.float32)
    return CandidateLists(
        request_ids=request, request_dense=np.zeros((requests, 0), dtype=np.float32), rows=rows,
        pair_ids=kind[:, :, None].astype(np.int32), pair_dense=empty, teacher=teacher.astype(np.float32),
        tower=rng.normal(size=rows.shape).astype(np.float32), clicked=clicked, uniform=np.ones(requests, dtype=bool),
    )


def _teacher(taste: np.ndarray, kind: np.ndarray, quality: np.ndarray) -> np.ndarray:
    return 2.0 * (kind == taste) + 0.5 * (quality - FIRST_ID) - 4.0


def write_impressions(folder: Path, rows: int, seed: int, bias: Sequence[float] = ()) -> None:
    """Encoded examples of one day, whose label follows from taste and kind; with the `bias` of slots, in logits, from
    the teacher of `lists`."""
    rng = np.random.default_rng(seed)
    ids = {slot.name: rng.integers(FIRST_ID, slot.size, rows).astype(np.int32)
           for slot in (*spec().block_ids("request"), *spec().block_ids("candidate"))}
    clicked = rng.random(rows) < 0.2 + 0.6 * (ids["taste"] == ids["kind"])
    slots = {}
    if bias:
        slots[POSITION] = rng.integers(1, len(bias) + 1, rows).astype(np.int32)
        logit = _teacher(ids["taste"], ids["kind"], ids["quality"]) + np.asarray(bias)[slots[POSITION] - 1]
        clicked = rng.random(rows) < 1 / (1 + np.exp(-logit))
    day = folder / "day=2026-01-01"
    day.mkdir(parents=True)
    roles = {LABEL: clicked.astype(np.float32), ROW: np.arange(rows), USER: np.arange(rows) % 50}
    pq.write_table(pa.table(ids | roles | slots), day / "part.parquet")


def task(seed: int = 0, **changes: object) -> Task:
    ids = np.random.default_rng(9).integers(FIRST_ID, VALUES + FIRST_ID, (ITEMS + 1, 3)).astype(np.int32)
    items = CandidateItems(ids, np.zeros((ITEMS + 1, 0), dtype=np.float32), np.ones(ITEMS + 1, dtype=np.float32))
    settings = Prerank.model_validate({
        "keep": 10, "recall_at": 5, "hidden": [32], "embedding_dim": 4, "list_length": 32, "batch_size": 512,
        "warm_steps": 200, "sweep_steps": 150, "tune_steps": 100, "final_steps": 100, "click_loss_weight": 0.0,
        "learning_rate": 1e-2, "penalties": [0.024, 0.12, 0.48], **changes})
    return Task(
        spec=spec(), sources=Sources(items, lists(ids, 200, 1), None), evaluated=lists(ids, 80, 2), settings=settings,
        costs=COSTS, measured=None, auction=False, seed=seed, progress=lambda what, done, total: None,
    )
