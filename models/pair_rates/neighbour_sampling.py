"""Neighbours of a set of nodes, at most S a relation, so that a step costs what its batch touches and not the graph.

Of a value with g > S edges in a relation, the list is turned by a random shift and cut into S parts of nearly one size,
and each part gives one edge: all different, each edge equally likely. A value with fewer gives them all. Plain torch:
the samplers of torch-geometric need compiled parts.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from models.pair_rates.graph import Incoming, PairGraph


class Messages(NamedTuple):
    """Into the nodes of one slot, by Q relations.

    nodes    [n] places of the nodes among the rows given
    bucket   [M] place in `nodes` x Q + relation
    source   [M] row of the sender
    edge     [M] number of the edge
    relations Q
    slot     number of the slot
    """

    nodes: Tensor
    bucket: Tensor
    source: Tensor
    edge: Tensor
    relations: int
    slot: int


def sample(
    graph: PairGraph, rows: Tensor, neighbours: int, excluded: Tensor, generator: torch.Generator
) -> list[Messages]:
    """One entry per slot that occurs among `rows` [n].

    Edges in `excluded` (sorted numbers) carry no message.
    """
    messages, owner = [], graph.slot_of[rows]
    for number, (start, incoming) in enumerate(zip(graph.starts.values(), graph.incoming, strict=True)):
        nodes = torch.nonzero(owner == number).squeeze(1)
        if len(nodes):
            values = rows[nodes] - start
            messages.append(Messages(nodes, *_into(graph, values, incoming, neighbours, excluded, generator),
                                     len(incoming), number))
    return messages


def _into(
    graph: PairGraph, values: Tensor, incoming: list[Incoming], neighbours: int, excluded: Tensor,
    generator: torch.Generator,
) -> tuple[Tensor, Tensor, Tensor]:
    """bucket, source and edge of `Messages`."""
    buckets, sources, edges = [], [], []
    for number, relation in enumerate(incoming):
        owner, edge = _draw(relation, values, neighbours, generator)
        kept = ~_among(edge, excluded)
        owner, edge = owner[kept], edge[kept]
        ends = graph.edges.left if relation.from_left else graph.edges.right
        buckets.append(owner * len(incoming) + number)
        sources.append(ends[edge].long())
        edges.append(edge)
    return torch.cat(buckets), torch.cat(sources), torch.cat(edges)


def _draw(incoming: Incoming, values: Tensor, neighbours: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """(place in `values`, edge number) of each drawn edge."""
    first, degree = incoming.ends[values], incoming.ends[values + 1] - incoming.ends[values]
    draws = torch.arange(neighbours, device=values.device)
    uniform = torch.rand(len(values), neighbours + 1, dtype=torch.float64, generator=generator, device=values.device)
    owner, draw = torch.nonzero(draws < degree[:, None], as_tuple=True)
    length = degree[owner]
    part, end = draw * length // neighbours, (draw + 1) * length // neighbours
    turned = part + (uniform[owner, draw] * (end - part)).long() + (uniform[owner, -1] * length).long()
    place = torch.where(length > neighbours, turned % length, draw)
    return owner, incoming.edges[first[owner] + place].long()


def _among(values: Tensor, ordered: Tensor) -> Tensor:
    if not len(ordered):
        return torch.zeros_like(values, dtype=torch.bool)
    place = torch.searchsorted(ordered, values).clamp(max=len(ordered) - 1)
    return ordered[place] == values
