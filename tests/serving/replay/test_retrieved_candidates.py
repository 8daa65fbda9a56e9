"""Candidate lists hold what retrieval returns to a past request, with the ranker's logits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from contracts.bundle.candidate_lists import CandidateItems, CandidateLists
from contracts.errors import DataError
from serving.bundle.loaded_bundle import LoadedBundle
from serving.replay import past_requests, retrieved_candidates
from serving.request.request_features import RequestFeatures, block


def test_candidates_are_what_retrieval_answers_with_the_ranker_s_logits(
    loaded: LoadedBundle, asked: list[past_requests.PastRequest], tmp_path: Path
) -> None:
    lists = retrieved_candidates.retrieve(loaded, asked, np.random.default_rng(0))
    assert lists.rows.shape == (len(asked), loaded.settings.retrieve.candidates)
    features = RequestFeatures(loaded)
    for number in (0, 7):
        rows = lists.rows[number][lists.valid[number]].astype(np.int64)
        assert len(set(rows.tolist())) == len(rows)
        assert not set(asked[number].requester.recent.tolist()) & set(rows.tolist())
        candidate = features.candidate_inputs(rows, asked[number].requester.inputs.ids)
        with torch.inference_mode():
            logits = loaded.ranker(block(asked[number].requester.inputs), block(candidate))
        np.testing.assert_allclose(lists.teacher[number][lists.valid[number]], logits.numpy(), atol=1e-5)
        assert (lists.clicked[number] == (lists.rows[number] == asked[number].clicked)).all()
    lists.save(tmp_path / "test")
    retrieved_candidates.items_of(loaded).save(tmp_path)
    back = CandidateLists.load(tmp_path / "test")
    np.testing.assert_array_equal(back.pair_ids, lists.pair_ids)
    np.testing.assert_array_equal(CandidateItems.load(tmp_path).ids, loaded.items.ids)
    with pytest.raises(DataError, match="sluice prerank"):
        CandidateLists.load(tmp_path / "train")


def test_a_length_draws_among_the_candidates(loaded: LoadedBundle, asked: list[past_requests.PastRequest]) -> None:
    whole = retrieved_candidates.retrieve(loaded, asked[:3], np.random.default_rng(0))
    part = retrieved_candidates.retrieve(loaded, asked[:3], np.random.default_rng(0), 9)
    assert part.rows.shape == (3, 9)
    for number in range(3):
        assert set(part.rows[number].tolist()) <= set(whole.rows[number].tolist())
