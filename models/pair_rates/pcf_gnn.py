"""PCF-GNN: vectors of field values from the co-occurrence graph (Li et al., SIGIR 2021, arXiv 2105.07752).

    h_i^0    = slot vector + value vector
    m_{i,r}  = [ mean of h_j^{k-1} over sampled neighbours j of relation r, weighted by exposure;
                 log( (clicks + s q) / (exposure + s) / q ), sums over these edges, q the relation's rate (pairs only);
                 log(1 + exposure) / 10 ]
    h_i^k    = relu(W_slot [h_i^{k-1}, m_{i,1}, ..., m_{i,R}])            the last layer without relu

Only the abstract and introduction of the paper were at hand: the weighting by exposure, the sums of clicks in the
messages and the dropped values are ours. While training, a value's own vector is dropped now and then, which teaches
the layers to speak for values that were seen little or never.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric.nn import MessagePassing
from torch_geometric.utils import softmax

from models.layers.own_rows import drawn
from models.pair_rates.graph import PairGraph
from models.pair_rates.neighbour_sampling import Messages, sample

INITIAL_STD = 0.05
DROPPED_VALUES = 0.2
FINAL_NODES, FINAL_NEIGHBOURS = 1024, 512  # at a time, when all vectors are made
EXTRA = 2  # numbers beside the mean: lift and log of exposure


class WeightedMean(MessagePassing):
    """Mean of the senders' vectors weighted by exposure: [S, D] -> [buckets, D]; 0 where nothing is sent."""

    def __init__(self) -> None:
        super().__init__(aggr="sum")

    def forward(self, x: Tensor, source: Tensor, bucket: Tensor, share: Tensor, buckets: int) -> Tensor:
        """`source` [M] rows of x, `bucket` [M] what they are sent to, `share` [M] with a sum of 1 in each bucket."""
        return self.propagate(torch.stack([source, bucket]), x=(x, None), share=share, size=(len(x), buckets))

    def message(self, x_j: Tensor, share: Tensor) -> Tensor:
        """[M, D]: what torch-geometric sums up."""
        return x_j * share[:, None]


class GraphLayer(nn.Module):
    """One round of messages. Attention turns exposure into weights by what receiver and sender are:

    share_ij = softmax_j( (Q h_i . K h_j) / sqrt(D) + log exposure_ij ) within a bucket
    """

    def __init__(self, dim: int, relations: list[int], attention: bool, last: bool) -> None:
        super().__init__()
        self.combine = nn.ModuleList(nn.Linear(dim + count * (dim + EXTRA), dim) for count in relations)
        self.query = nn.Linear(dim, dim, bias=False) if attention else None
        self.key = nn.Linear(dim, dim, bias=False) if attention else None
        self.mean, self.last = WeightedMean(), last

    def forward(self, own: Tensor, sent: Tensor, source: Tensor, messages: Messages, extra: Tensor, slot: int,
                exposure: Tensor) -> Tensor:
        """own [n, D] receivers, sent [S, D], source [M] places in `sent`, extra [n x Q, EXTRA] -> [n, D]."""
        buckets = len(own) * messages.relations
        if self.query is not None and self.key is not None:
            receiver = own[messages.bucket // messages.relations]
            score = (self.query(receiver) * self.key(sent[source])).sum(1) / own.shape[1] ** 0.5
            share = softmax(score + exposure.log(), messages.bucket, num_nodes=buckets)
        else:
            total = own.new_zeros(buckets).index_add_(0, messages.bucket, exposure)
            share = exposure / total[messages.bucket]
        mean = self.mean(sent, source, messages.bucket, share, buckets)
        told = torch.cat([mean, extra], dim=1).view(len(own), -1)
        mixed = self.combine[slot](torch.cat([own, told], dim=1))
        return mixed if self.last else torch.relu(mixed)


class PcfGnn(nn.Module):
    """The encoder; its vectors are D wide. `shrink` is s above, at least 1."""

    head = "mlp"

    def __init__(
        self, graph: PairGraph, dim: int, layers: int, neighbours: int, attention: bool, shrink: float
    ) -> None:
        super().__init__()
        self.dim, self.neighbours, self.shrink = dim, neighbours, max(shrink, 1.0)
        self.values = nn.Parameter(drawn(graph.nodes, dim, INITIAL_STD))
        self.slots = nn.Parameter(torch.randn(len(graph.slots), dim) * INITIAL_STD)
        relations = [len(incoming) for incoming in graph.incoming]
        self.layers = nn.ModuleList(
            GraphLayer(dim, relations, attention, number == layers) for number in range(1, layers + 1)
        )

    @property
    def width(self) -> int:
        """Of the vectors."""
        return self.dim

    def forward(self, graph: PairGraph, rows: Tensor, excluded: Tensor, generator: torch.Generator) -> Tensor:
        """Vectors [n, D] of distinct rows [n]; `excluded` edges carry no message."""
        return self._round(len(self.layers), graph, rows, excluded, generator)

    def _round(self, k: int, graph: PairGraph, rows: Tensor, excluded: Tensor, generator: torch.Generator) -> Tensor:
        if k == 0:
            return self._start(graph, rows)
        messages = sample(graph, rows, self.neighbours, excluded, generator)
        needed, places = torch.unique(torch.cat([rows, *(each.source for each in messages)]), return_inverse=True)
        before = self._round(k - 1, graph, needed, excluded, generator)
        return self._combine(k, graph, rows, before, places, messages)

    def _combine(
        self, k: int, graph: PairGraph, rows: Tensor, before: Tensor, places: Tensor, messages: list[Messages]
    ) -> Tensor:
        """`places` of the rows, then of the senders, in `before`."""
        own, sources = places[: len(rows)], places[len(rows) :].split([len(each.source) for each in messages])
        after = before.new_empty(len(rows), self.dim)
        parts = [
            self.layers[k - 1](before[own[each.nodes]], before, source, each, self._told(graph, each),
                               each.slot, graph.edges.exposure[each.edge])
            for each, source in zip(messages, sources, strict=True)
        ]
        return after.index_copy(0, torch.cat([each.nodes for each in messages]), torch.cat(parts))

    def _told(self, graph: PairGraph, messages: Messages) -> Tensor:
        """[n x Q, EXTRA] of what the edges themselves say."""
        edge, buckets = messages.edge, len(messages.nodes) * messages.relations
        relation, shown = graph.edges.relation[edge].long(), graph.edges.exposure[edge]
        expected = torch.where(relation < len(graph.pairs), graph.edges.clicks[edge] / graph.priors[relation], shown)
        sums = shown.new_zeros(buckets, 2).index_add_(0, messages.bucket, torch.stack([expected, shown], dim=1))
        lift = (sums[:, 0] + self.shrink).log() - (sums[:, 1] + self.shrink).log()
        return torch.stack([lift, sums[:, 1].log1p() / 10], dim=1)

    def _start(self, graph: PairGraph, rows: Tensor) -> Tensor:
        known = graph.seen[rows].float()[:, None]
        if self.training:
            known = known * (torch.rand(len(rows), 1, device=rows.device) >= DROPPED_VALUES)
        return self.slots[graph.slot_of[rows]] + known * F.embedding(rows, self.values, sparse=True)

    @torch.no_grad()
    def all_vectors(self, graph: PairGraph) -> Tensor:
        """[N, D] with (nearly) all neighbours, layer by layer, a bounded number of nodes at a time."""
        rows = torch.arange(graph.nodes, device=graph.device)
        generator = torch.Generator(graph.device).manual_seed(0)
        vectors = self._start(graph, rows)
        for k in range(1, len(self.layers) + 1):
            parts = rows.split(FINAL_NODES)
            vectors = torch.cat([self._final(k, graph, part, vectors, generator) for part in parts])
        return vectors

    def _final(self, k: int, graph: PairGraph, rows: Tensor, before: Tensor, generator: torch.Generator) -> Tensor:
        messages = sample(graph, rows, FINAL_NEIGHBOURS, rows[:0], generator)
        places = torch.cat([rows, *(each.source for each in messages)])
        return self._combine(k, graph, rows, before, places, messages)
