from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from models.preranking.losses import CHUNK, chunk_weights, consistency, distillation


def lists(seed: int = 0) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    scores, teacher = (torch.randn(3, 3 * CHUNK, generator=generator) for _ in range(2))
    valid = torch.ones(3, 3 * CHUNK, dtype=torch.bool)
    valid[1, -5:] = False
    return scores, teacher, valid


def test_distillation_is_least_at_the_teacher() -> None:
    scores, teacher, valid = lists()
    least = float(distillation(teacher, teacher, valid))
    assert least < float(distillation(scores, teacher, valid))
    assert least < float(distillation(teacher + 0.01, teacher, valid))


def test_consistency_by_counting_pairs() -> None:
    scores, teacher, valid = lists(1)
    total = weight = 0.0
    for row in range(len(scores)):
        real = [k for k in range(scores.shape[1]) if valid[row, k]]
        order = sorted(real, key=lambda k: -float(teacher[row, k]))
        for place_a, a in enumerate(order):
            for place_b, b in enumerate(order):
                chunk_a, chunk_b = place_a // CHUNK + 1, place_b // CHUNK + 1
                if chunk_a < chunk_b:
                    gain = abs(2.0 ** (1 - chunk_a) - 2.0 ** (1 - chunk_b))
                    w = gain * abs(1 / math.log2(1 + chunk_a) - 1 / math.log2(1 + chunk_b))
                    total += w * math.log1p(math.exp(float(scores[row, b] - scores[row, a])))
                    weight += w
    assert float(consistency(scores, teacher, valid)) == pytest.approx(total / weight, rel=1e-4)


def test_the_order_within_a_chunk_does_not_matter() -> None:
    weights = chunk_weights(3 * CHUNK).numpy()
    inside = np.kron(np.eye(3), np.ones((CHUNK, CHUNK)))
    assert (weights[inside > 0] == 0).all()
    assert (weights[np.triu(1 - inside) > 0] > 0).all()
    assert (np.tril(weights) == 0).all()


def test_a_list_of_one_chunk_has_no_order_to_keep() -> None:
    one = torch.randn(2, CHUNK)
    assert float(consistency(one, one.flip(1), torch.ones(2, CHUNK, dtype=torch.bool))) == 0.0
