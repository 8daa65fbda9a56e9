"""The co-occurrence graph of pipelines/cooccurrence in memory: nodes in one row of numbers, edges by destination.

Node (slot, id) has row start[slot] + id, so that the ids of a request find their vectors without another look-up. Ids 0
and 1 have rows too: 1 stands for whatever was no known value, 0 is never seen. A relation carries messages both ways.
Memory: 32 bytes an edge; neighbour lists hold edge numbers only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow.parquet as pq
import torch
from torch import Tensor

from contracts.features.pair_graph import EDGES, GraphManifest, Relation


class Edges(NamedTuple):
    """relation int32 [E]; left, right rows int32 [E]; impressions, clicks, exposure float32 [E].

    Exposure is impressions as if shown in the first slot: what rates and weights are made of.
    """

    relation: Tensor
    left: Tensor
    right: Tensor
    impressions: Tensor
    clicks: Tensor
    exposure: Tensor

    def take(self, chosen: Tensor) -> Edges:
        """The edges numbered, or masked, by `chosen`."""
        return Edges(*(part[chosen] for part in self))


class Incoming(NamedTuple):
    """Messages into the values of one slot by one relation: those of its i-th value are edges[ends[i]:ends[i + 1]]."""

    relation: int
    from_left: bool
    ends: Tensor
    edges: Tensor


@dataclass(frozen=True, eq=False)
class PairGraph:
    """Values as nodes: those of all `slots` (name -> number of ids), one slot after the other; relations with the pairs
    first. The ends of `edges` are numbers of nodes."""

    slots: dict[str, int]
    relations: tuple[Relation, ...]
    edges: Edges

    @cached_property
    def starts(self) -> dict[str, int]:
        """Of each slot its first node."""
        ends = list(accumulate(self.slots.values()))
        return {slot: end - size for (slot, size), end in zip(self.slots.items(), ends, strict=True)}

    @property
    def nodes(self) -> int:
        """N: the ids of all slots, padding and unknown included."""
        return sum(self.slots.values())

    @cached_property
    def pairs(self) -> list[int]:
        """Numbers of the relations with a rate to learn; they come first."""
        return [number for number, relation in enumerate(self.relations) if relation.kind == "pair"]

    @cached_property
    def slot_of(self) -> Tensor:
        """int64 [N]: the place of each node's slot among `slots`."""
        sizes = torch.tensor(list(self.slots.values()))
        return torch.repeat_interleave(torch.arange(len(sizes)), sizes).to(self.device)

    @cached_property
    def priors(self) -> Tensor:
        """Clicks over exposure of each relation, kept off 0 and 1."""
        count = len(self.relations)
        clicks = torch.bincount(self.edges.relation, self.edges.clicks.double(), count)
        shown = torch.bincount(self.edges.relation, self.edges.exposure.double(), count)
        return ((clicks + 0.5) / (shown + 1.0)).float()

    @cached_property
    def targets(self) -> Tensor:
        """Numbers of the edges with a rate to learn."""
        return torch.nonzero(self.edges.relation < len(self.pairs)).squeeze(1)

    @cached_property
    def seen(self) -> Tensor:
        """bool [N]: values that stand in an edge."""
        seen = torch.zeros(self.nodes, dtype=torch.bool, device=self.device)
        for ends in (self.edges.left, self.edges.right):
            seen[ends.long()] = True
        return seen

    @cached_property
    def incoming(self) -> list[list[Incoming]]:
        """Per slot, in the order of `slots`."""
        by_slot: dict[str, list[Incoming]] = {slot: [] for slot in self.slots}
        for number, relation in enumerate(self.relations):
            edges = torch.nonzero(self.edges.relation == number).squeeze(1).int()
            by_slot[relation.left].append(self._incoming(number, edges, False))
            by_slot[relation.right].append(self._incoming(number, edges, True))
        return list(by_slot.values())

    def _incoming(self, number: int, edges: Tensor, from_left: bool) -> Incoming:
        slot = self.relations[number].right if from_left else self.relations[number].left
        own = (self.edges.right if from_left else self.edges.left)[edges.long()] - self.starts[slot]
        counts = torch.bincount(own, minlength=self.slots[slot])
        ends = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
        return Incoming(number, from_left, ends, edges[torch.argsort(own, stable=True)])

    @property
    def device(self) -> torch.device:
        """Where the edges are, and all that is made of them."""
        return self.edges.relation.device

    def to(self, device: torch.device) -> PairGraph:
        """The graph on the device; itself where it is there."""
        if device == self.device:
            return self
        return PairGraph(self.slots, self.relations, Edges(*(part.to(device) for part in self.edges)))

    def without(self, edges: Tensor) -> PairGraph:
        """The graph less these edges."""
        kept = torch.ones(len(self.edges.relation), dtype=torch.bool, device=self.device)
        kept[edges] = False
        return PairGraph(self.slots, self.relations, self.edges.take(kept))

    @classmethod
    def read(cls, folder: Path) -> PairGraph:
        """Edges in one order, whatever their files' order. Raises DataError without a graph."""
        manifest = GraphManifest.read(folder)
        table = pq.read_table(folder / EDGES)
        names = ("relation", "left", "right", "impressions", "clicks", "exposure")
        columns = {name: table.column(name).to_numpy() for name in names}
        order = np.lexsort((columns["right"], columns["left"], columns["relation"]))
        return cls.of(manifest.slots, manifest.relations, *(columns[name][order] for name in names))

    @classmethod
    def of(
        cls, slots: dict[str, int], relations: Sequence[Relation], relation: np.ndarray, left: np.ndarray,
        right: np.ndarray, impressions: np.ndarray, clicks: np.ndarray, exposure: np.ndarray,
    ) -> PairGraph:
        """From ids local to their slots."""
        graph = cls(slots, tuple(relations), Edges(*(torch.empty(0) for _ in Edges._fields)))
        lefts, rights = (
            np.array([graph.starts[ends[side]] for ends in relations], dtype=np.int64)[relation] for side in (0, 1)
        )
        places = (relation, left + lefts, right + rights)
        whole = [torch.from_numpy(np.asarray(part, dtype=np.int32)) for part in places]
        counts = [torch.from_numpy(np.asarray(part, dtype=np.float32)) for part in (impressions, clicks, exposure)]
        return cls(slots, tuple(relations), Edges(*whole, *counts))
