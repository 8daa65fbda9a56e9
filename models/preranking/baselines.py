"""Other ways to order a pre-ranker's fields, best first, evaluated on the same frontier as FSCD.

    permutation           recall lost when a field's values are shuffled among candidates and requests
    shark                 |gradient x (mean input - input)|, summed over a field's inputs: SHARK's first-order Taylor
                          term (arXiv 2308.09395), mean over training candidates
    squeeze_excitation    mean of w = sigmoid(W q + b), q the mean input of each field, trained with the network: COLD
                          (arXiv 2007.16122)
    lpfs                  size of x in gates x^2 / (x^2 + e), e falling along training (arXiv 2206.00267); x is pulled
                          to 0 by |x| times the field's cost, where the paper takes a proximal step

The last two are trained from a fresh network for as many steps as FSCD's path takes.
"""

from __future__ import annotations

import copy

import numpy as np
import torch
from torch import Tensor, nn

from contracts.features.feature_spec import FeatureSpec
from models.examples.batches import FeatureBlock
from models.preranking.candidate_batches import batch, drawn
from models.preranking.concrete_gates import Gates
from models.preranking.fscd import Fscd
from models.preranking.fscd_training import Trainer
from models.preranking.losses import distillation
from models.preranking.quality import evaluate
from models.preranking.sweep import Task, first

REQUESTS, TAYLOR_BATCHES, LIST = 60, 20, 64
SHRINK, FIRST_EPSILON, LAST_EPSILON = 3e-3, 0.1, 1e-4


def orders(task: Task, trained: Fscd) -> dict[str, list[str]]:
    """Fields of every baseline, best first; `trained` has all of them."""
    return {
        "permutation": _ranked(trained, permutation(task, trained)),
        "shark": _ranked(trained, shark(task, trained)),
        "squeeze_excitation": _ranked(trained, squeeze_excitation(task)),
        "lpfs": _ranked(trained, lpfs(task)),
    }


def _ranked(network: Fscd, values: np.ndarray) -> list[str]:
    return [network.fields[place] for place in np.argsort(-values, kind="stable")]


@torch.inference_mode()
def permutation(task: Task, network: Fscd) -> np.ndarray:
    """[F]: recall lost on the first requests of the validation window."""
    lists = first(task.evaluated, REQUESTS)
    whole = batch(task.sources.items, lists, np.arange(len(lists)))
    left, right = network.inputs(whole.request, whole.candidate)
    rng = np.random.default_rng(task.seed)
    base, lost = 0.0, []
    for field in range(-1, len(network.fields)):
        user, candidate = left.clone(), right.clone()
        for inputs, columns in ((user, network.request_columns), (candidate, network.candidate_columns)):
            mine = columns == field
            if mine.any():
                inputs[:, mine] = inputs[torch.from_numpy(rng.permutation(len(inputs)))][:, mine]
        hidden = network.mlp.first(user.repeat_interleave(len(candidate) // len(user), 0), candidate)
        scores = network.mlp.rest(hidden).view(whole.valid.shape).numpy()
        settings = task.settings
        recall = evaluate(scores, task.sources.items, lists, recall_at=settings.recall_at, keep=settings.keep,
                          auction=task.auction).recall
        base = recall if field < 0 else base
        lost.append(base - recall)
    return np.array(lost[1:])


def shark(task: Task, network: Fscd) -> np.ndarray:
    """[F]: Taylor term of replacing a field's inputs by their mean."""
    network, rng = copy.deepcopy(network), np.random.default_rng(task.seed)
    totals = torch.zeros(len(network.fields))
    for _ in range(TAYLOR_BATCHES):
        requests = rng.choice(len(task.sources.lists), min(16, len(task.sources.lists)), replace=False)
        part = batch(task.sources.items, task.sources.lists, requests, drawn(task.sources.lists, requests, LIST, rng))
        sides = [side.detach().requires_grad_() for side in network.inputs(part.request, part.candidate)]
        each = len(sides[1]) // len(sides[0])
        hidden = network.mlp.first(sides[0].repeat_interleave(each, 0), sides[1])
        scores = network.mlp.rest(hidden).view(part.valid.shape)
        gradients = torch.autograd.grad(distillation(scores, part.teacher, part.valid), sides)
        both = (network.request_columns, network.candidate_columns)
        for side, gradient, columns in zip(sides, gradients, both, strict=True):
            effect = gradient * (side.detach().mean(dim=0) - side.detach()) * len(side)
            by_field = torch.zeros(len(side), len(network.fields)).index_add_(1, columns, effect)
            totals += by_field.abs().mean(dim=0)
    return totals.numpy()


class SqueezeExcitation(Fscd):
    """Weighs every field of every candidate by sigmoid(W q + b), q_j the mean of the field's inputs."""

    def __init__(self, spec: FeatureSpec, dim: int, hidden: tuple[int, ...]) -> None:
        super().__init__(spec, dim, hidden)
        self.excite = nn.Linear(len(self.fields), len(self.fields))
        self.total, self.count = torch.zeros(len(self.fields)), 0

    def inputs(
        self, request: FeatureBlock, candidate: FeatureBlock, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """As of FSCD, with the request's part repeated for each candidate; `mask` is not read."""
        left, right = super().inputs(request, candidate)
        left = left.repeat_interleave(len(right) // len(left), 0)
        squeezed = right.new_zeros(len(right), len(self.fields))
        for side, columns in ((left, self.request_columns), (right, self.candidate_columns)):
            width = torch.bincount(columns, minlength=len(self.fields)).clamp(min=1)
            squeezed = squeezed + torch.zeros_like(squeezed).index_add(1, columns, side) / width
        weights = self.excite(squeezed).sigmoid()
        self.total, self.count = self.total + weights.detach().sum(dim=0), self.count + len(weights)
        return left * weights[:, self.request_columns], right * weights[:, self.candidate_columns]


class SmoothGates(Gates):
    """x^2 / (x^2 + e), one per field."""

    def __init__(self, costs: Tensor) -> None:
        super().__init__()
        self.costs, self.epsilon = costs, FIRST_EPSILON
        self.x = nn.Parameter(torch.ones(len(costs)))

    def sample(self, rows: int, generator: torch.Generator) -> Tensor:
        """[rows, F], without noise."""
        square = self.x.square()
        return (square / (square + self.epsilon)).expand(rows, -1)

    def penalty(self) -> Tensor:
        """sum_j c_j |x_j|."""
        return (self.costs * self.x.abs()).sum()


def squeeze_excitation(task: Task) -> np.ndarray:
    """[F]: mean weight over the steps behind the warm ones."""
    settings, network = task.settings, task.network(SqueezeExcitation)
    trainer = Trainer(network, None, task.sources, settings, task.seed, task.spec.positions)
    trainer.run(settings.warm_steps)
    network.total, network.count = torch.zeros(len(network.fields)), 0
    trainer.run(settings.sweep_steps * len(settings.penalties))
    return (network.total / max(network.count, 1)).numpy()


def lpfs(task: Task) -> np.ndarray:
    """[F]: |x| of the gates after training together with a network."""
    settings, network = task.settings, task.network(Fscd)
    gates = SmoothGates(torch.tensor([task.costs[name] for name in network.fields]))
    trainer = Trainer(network, gates, task.sources, settings, task.seed, task.spec.positions)
    trainer.run(settings.warm_steps)
    rounds = len(settings.penalties)
    for number in range(rounds):
        gates.epsilon = FIRST_EPSILON * (LAST_EPSILON / FIRST_EPSILON) ** ((number + 1) / rounds)
        trainer.run(settings.sweep_steps, task.reg_scale(SHRINK))
    return gates.x.detach().abs().numpy()
