"""Other ways of choosing crosses, each with the same budget: what the search has to beat.

random        any allowed pairs
information   the pairs of largest conditional mutual information with the label
taylor        TayFCS (KDD 2025, arXiv 2507.03895): first-order Taylor terms of a trained network, multiplied
exhaustive    every allowed pair, pruned by gain as the search's proposals are: what the graph adds to the pruning

All see the training window only.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import torch

from models.cross_search import ridge_logistic
from models.cross_search.columns import CrossColumns
from models.cross_search.crossable_pairs import entropy
from models.cross_search.derivation import Cross
from models.cross_search.ridge_logistic import Column
from models.examples.batches import ExampleSet
from models.layers.embedding import FusedEmbedding
from models.layers.losses import log_loss_sum
from models.networks.fives import nodes

SCORE_BATCH = 4096
ELIMINATION_RIDGE = 10.0


def pairs(allowed: np.ndarray) -> list[Cross]:
    """All allowed pairs in a fixed order."""
    return [frozenset(pair) for pair in itertools.combinations(range(len(allowed)), 2) if allowed[pair]]


def random_crosses(allowed: np.ndarray, budget: int, seed: int) -> list[Cross]:
    """`budget` of the allowed pairs [S, S], drawn without repetition."""
    every = pairs(allowed)
    drawn = np.random.default_rng(seed).permutation(len(every))[:budget]
    return [every[index] for index in drawn]


def most_informative(columns: CrossColumns, allowed: np.ndarray, budget: int) -> list[Cross]:
    """By min(I(i; y | j), I(j; y | i)), the smaller of what each says beyond the other, from plain counts."""
    singles = [_information(columns, frozenset((place,))) for place in range(len(columns.slots))]
    scored = []
    for pair in pairs(allowed):
        left, right = sorted(pair)
        both = _information(columns, pair)
        scored.append((both - max(singles[left], singles[right]), left, right))
    return [frozenset((left, right)) for _, left, right in sorted(scored, reverse=True)[:budget]]


def _information(columns: CrossColumns, cross: Cross) -> float:
    """I(cross; y) = H(cross) + H(y) - H(cross, y), in nats."""
    codes, size = columns.codes(sorted(cross))
    label = columns.label.astype(np.int64)
    return entropy(codes, size) + entropy(label, 2) - entropy(codes * 2 + label, 2 * size)


def taylor_crosses(
    network: torch.nn.Module, examples: ExampleSet, columns: CrossColumns, allowed: np.ndarray, budget: int
) -> list[Cross]:
    """Pairs by mean |t_i t_j|, t_i = gradient of the loss by the vector of field i, times the vector (H ~ g g').

    One backward pass over the examples; of twice the budget those are dropped to which a joint logistic regression
    gives the least spread of logits (the paper's elimination of redundant crosses).
    """
    scores = _taylor_scores(network, examples, columns)
    ranked = sorted(pairs(allowed), key=lambda pair: -scores[tuple(sorted(pair))])[: 2 * budget]
    return _eliminate(columns, ranked, budget)


def _taylor_scores(network: torch.nn.Module, examples: ExampleSet, columns: CrossColumns) -> np.ndarray:
    embedding = next(module for module in network.modules() if isinstance(module, FusedEmbedding))
    places = {slot.name: place for place, slot in enumerate(nodes(examples.spec))}
    kept = torch.tensor([places[slot.name] for slot in columns.slots])
    total = torch.zeros(len(kept), len(kept), dtype=torch.float64)
    terms: list[torch.Tensor] = []

    def watch(module: torch.nn.Module, inputs: object, output: tuple[torch.Tensor, ...]) -> None:
        for side in output:
            side.retain_grad()
        terms[:] = list(output)

    handle = embedding.register_forward_hook(watch)
    for batch in examples.batches(SCORE_BATCH):
        network.zero_grad()
        log_loss_sum(network(batch.request, batch.candidate), batch.label).backward()
        effect = torch.cat([_effects(side, reader.slots, embedding.dim) for side, reader in
                            zip(terms, (embedding.request, embedding.candidate), strict=True)], dim=1)
        effect = effect[:, kept].abs().double()
        total += effect.T @ effect
    handle.remove()
    return total.numpy()


def _effects(inputs: torch.Tensor, slots: Sequence[object], dim: int) -> torch.Tensor:
    """[B, S]: gradient times value, summed over the vector of each slot."""
    assert inputs.grad is not None
    ids = len(slots) * dim
    return (inputs.grad * inputs.detach())[:, :ids].view(len(inputs), -1, dim).sum(dim=2)


def _eliminate(columns: CrossColumns, crosses: Sequence[Cross], budget: int) -> list[Cross]:
    coded = [columns.codes(sorted(cross)) for cross in crosses]
    model = ridge_logistic.fit([Column(codes, size, ELIMINATION_RIDGE) for codes, size in coded], columns.label)
    weights = model.weights.numpy()
    spread = [float(np.std(weights[start + codes])) for start, (codes, _) in zip(model.starts, coded, strict=True)]
    kept = sorted(range(len(crosses)), key=lambda index: -spread[index])[:budget]
    return [crosses[index] for index in sorted(kept)]
