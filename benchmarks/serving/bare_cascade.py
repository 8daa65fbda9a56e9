"""The floor of the funnel: the same answer in straight lines.

    retrieve   the user's row and context ▶ tower ▶ faiss ▶ the channels' quotas
    prerank    the candidates' vectors ▶ the pre-ranker's MLP ▶ expected revenue ▶ the best 200
    rank       crosses ▶ the ranker's MLP, whose first layer reads what an item adds from the bundle's table
    rerank     a generalised second price auction ▶ names

Written by hand for the benchmark's own world (benchmarks/serving/funnel.py) on the same libraries, tables and weights,
with every shortcut that is exact: no checks, no deadline, no reports, no filters, rules or fallbacks, no other kind of
network. Its slates are those of the funnel (tests/benchmarks/serving/test_bare_cascade.py), so what the funnel takes
beyond it is what the platform costs, not work that the floor has left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import faiss
import numpy as np
from torch import nn

from contracts.features.feature_spec import FIRST_ID
from models.layers.embedding import BlockReader, FusedEmbedding
from models.layers.mlp import Mlp
from models.networks.dnn import Dnn
from serving.bundle.loaded_bundle import LoadedBundle

PER_THOUSAND = 1000.0


class Sold(NamedTuple):
    """An item of the slate, its calibrated click probability, its eCPM, and the price of a click."""

    item: str
    probability: float
    score: float
    price: float


class _Layers(NamedTuple):
    """Weights of an MLP, [in, out] and [out] each."""

    first: np.ndarray
    bias: np.ndarray
    rest: list[tuple[np.ndarray, np.ndarray]]

    @classmethod
    def of(cls, mlp: Mlp, candidate: bool) -> _Layers:
        """`candidate` says which half of the first layer is `first`."""
        first = mlp.first.candidate if candidate else mlp.first.request
        linears = [layer for layer in mlp.rest if isinstance(layer, nn.Linear)]
        return cls(*(_plain(first.T), _plain(mlp.first.bias)),
                   [(_plain(layer.weight.T), _plain(layer.bias)) for layer in linears])

    def behind(self, hidden: np.ndarray) -> np.ndarray:
        """The outputs of the layers that follow the first's, [K, out]."""
        for weight, bias in self.rest:
            np.maximum(hidden, 0.0, out=hidden)
            hidden = hidden @ weight
            hidden += bias
        return hidden


class _Look(NamedTuple):
    """How the ids of a request's block become a network's inputs: columns of one id first, then the history's."""

    weight: np.ndarray
    order: np.ndarray
    offsets: np.ndarray
    singles: int

    @classmethod
    def of(cls, reader: BlockReader, embedding: FusedEmbedding) -> _Look:
        return cls(_plain(embedding.weight), reader.order.numpy(), reader.offsets.numpy(), reader.singles)

    def inputs(self, ids: np.ndarray, dense: np.ndarray) -> np.ndarray:
        """[1, W] and [1, N] -> [1, X]; the world's histories are full."""
        vectors = self.weight.take(ids[0, self.order] + self.offsets, axis=0)
        mean = vectors[self.singles :].mean(axis=0)
        return np.concatenate([vectors[: self.singles].reshape(-1), mean, dense[0]])[None]


class Asked(NamedTuple):
    """A request as far as it has come: the requester's ids and numbers, the user's vector, rows of candidates."""

    ids: np.ndarray
    dense: np.ndarray
    vector: np.ndarray
    rows: np.ndarray


class Ranked(NamedTuple):
    rows: np.ndarray
    probabilities: np.ndarray


class BareCascade:
    """Over a bundle that `funnel.world` made with the ranker "dnn"."""

    def __init__(self, bundle: LoadedBundle) -> None:
        assert isinstance(bundle.ranker, Dnn) and bundle.rank_table is not None and bundle.pre_ranker is not None
        assert bundle.towers is not None and bundle.bids is not None
        spec, settings = bundle.spec, bundle.settings
        keys = bundle.users.keys_of(np.arange(len(bundle.users)))
        self._users = {key: row for row, key in enumerate(keys)}
        self._user_ids, self._user_dense = np.asarray(bundle.users.ids), np.asarray(bundle.users.dense)
        missing = bundle.encoder.encode({}, "user", "context").ids
        self._missing, self._user_width = missing, spec.id_width("user")
        context = [field for field in spec.fields if field.side == "context"]
        starts = {slot.name: slot.start for slot in spec.block_ids("request")}
        values = bundle.encoder.vocabularies["values"].keys().to_pylist()
        self._context = {field.name: (starts[field.name], dict(zip(values, range(FIRST_ID, FIRST_ID + len(values)),
                                                                    strict=True))) for field in context}
        self._recent, self._item_ids = np.asarray(bundle.recent), np.asarray(bundle.items.ids)
        self._item_keys = bundle.items.keys_of(np.arange(len(bundle.items)))
        self._neighbours, self._popularity = np.asarray(bundle.neighbours), np.asarray(bundle.popularity)
        self._bids, self._vectors = np.asarray(bundle.bids), np.asarray(bundle.item_vectors)
        self._index, self._settings = bundle.index.faiss_index, settings
        self._bounds = None if bundle.index.exact else _bounds(bundle)
        self._width = bundle.index.vectors.shape[1]
        self._closed = np.zeros(len(bundle.items), dtype=bool)
        self._tower_look, self._tower = _look_and_layers(bundle.towers.embedding, bundle.towers.user)
        self._look, self._request = _look_and_layers(bundle.ranker.embedding, bundle.ranker.mlp)
        self._pre = _Layers.of(bundle.pre_ranker.mlp, candidate=True)
        self._pre_request, self._scale = _plain(bundle.pre_ranker.mlp.first.request.T), np.float32(bundle.pre_ranker.scale)
        size = settings.train.tower_dim
        product, item, mean = np.split(self._pre.first, (size, 2 * size))
        self._paired = self._scale * self._scale * (product + mean / np.float32(size))
        self._item = self._scale * item
        self._table, crosses = np.asarray(bundle.rank_table.rows), [f for f in spec.fields if f.kind == "cross"]
        request, items = starts, {slot.name: slot.start for slot in spec.block_ids("candidate")}
        self._of_request = [request[field.parts[0]] for field in crosses]
        self._of_item = np.array([items[field.parts[1]] for field in crosses])
        self._sizes = np.array([spec.slot(field.parts[1]).size for field in crosses], dtype=np.int64)
        self._buckets = np.array([field.buckets for field in crosses], dtype=np.int64)
        reader, dim = bundle.ranker.embedding.candidate, bundle.ranker.embedding.dim
        places = [reader.order.tolist().index(items[field.name]) for field in crosses]
        self._cross_offsets = reader.offsets.numpy()[places] + FIRST_ID
        columns = (np.array(places)[:, None] * dim + np.arange(dim)).reshape(-1)
        self._cross_weight = np.ascontiguousarray(_plain(bundle.ranker.mlp.first.candidate.T)[columns])

    def __call__(self, user: str, context: Mapping[str, str], limit: int) -> list[Sold]:
        return self.rerank(self.rank(self.prerank(self.retrieve(user, context))), limit)

    def retrieve(self, user: str, context: Mapping[str, str]) -> Asked:
        """At most `retrieve.candidates` items, by the channels of the world's settings."""
        row, ids = self._users[user], self._missing.copy()
        ids[0, : self._user_width] = self._user_ids[row]
        for name, value in context.items():
            start, known = self._context[name]
            ids[0, start] = known[value]
        dense = self._user_dense[row][None]
        inputs = self._tower_look.inputs(ids, dense)
        vector = self._tower.behind(inputs @ self._tower.first + self._tower.bias)[0]
        vector /= np.sqrt(vector @ vector)
        recent, quotas, closed = self._recent[row], self._settings.retrieve, self._closed
        query = np.zeros((1, self._width), dtype=np.float32)
        query[0, : len(vector)], query[0, len(vector)] = vector, 1.0
        found = self._index.search(query, quotas.two_tower + len(recent), params=self._bounds)[1][0]
        closed[recent] = True
        near = found[~closed[found]][: quotas.two_tower]
        closed[near] = True
        similar = self._neighbours[recent].T.ravel()
        similar = similar[~closed[similar]]
        first = np.unique(similar, return_index=True)[1]
        first.sort()
        similar = similar[first][: quotas.item_to_item]
        closed[similar] = True
        left = quotas.candidates - len(near) - len(similar)
        popular = self._popularity[: 2 * left]
        popular = popular[~closed[popular]][:left]
        for rows in (recent, near, similar):
            closed[rows] = False
        return Asked(ids, dense, vector, np.concatenate([near, similar, popular]))

    def prerank(self, asked: Asked) -> Asked:
        """The best `prerank.keep`, in no order."""
        vector, rows = asked.vector, asked.rows
        folded = vector[:, None] * self._paired
        folded += self._item
        hidden = self._vectors[rows] @ folded
        hidden += self._scale * vector @ self._pre_request + self._pre.bias
        revenue = self._bids[rows] * _sigmoid(self._pre.behind(hidden)[:, 0])
        keep = self._settings.prerank.keep
        return asked._replace(rows=rows[np.argpartition(-revenue, keep)[:keep]])

    def rank(self, asked: Asked) -> Ranked:
        """Click probabilities."""
        rows, request = asked.rows, asked.ids[0, self._of_request].astype(np.int64) * self._sizes
        codes = request + self._item_ids[rows[:, None], self._of_item]
        codes %= self._buckets
        codes += self._cross_offsets
        hidden = self._table.take(rows, axis=0)
        hidden += self._look.inputs(asked.ids, asked.dense) @ self._request.first + self._request.bias
        hidden += self._look.weight.take(codes, axis=0).reshape(len(rows), -1) @ self._cross_weight
        return Ranked(rows, _sigmoid(self._request.behind(hidden)[:, 0]))

    def rerank(self, ranked: Ranked, limit: int) -> list[Sold]:
        """Slots by eCPM; a click costs the smallest bid that keeps its slot."""
        bids = self._bids[ranked.rows]
        revenue = PER_THOUSAND * bids.astype(np.float64) * ranked.probabilities
        best = np.argpartition(-revenue, limit + 1)[: limit + 1]
        best = best[np.argsort(-revenue[best])]
        won, probabilities = best[:limit], ranked.probabilities[best[:limit]]
        price = np.minimum(np.maximum(revenue[best[1:]], self._settings.rerank.reserve_price)
                           / (PER_THOUSAND * probabilities), bids[won])
        names = [self._item_keys[row] for row in ranked.rows[won].tolist()]
        return [*map(Sold, names, probabilities.tolist(), revenue[won].tolist(), price.tolist())]


def _bounds(bundle: LoadedBundle) -> faiss.SearchParametersIVF:
    from serving.bundle.item_index import MAX_LISTS_READ, bounded

    return bounded(min(bundle.index.faiss_index.nlist, MAX_LISTS_READ), bundle.index.max_codes)


def _look_and_layers(embedding: FusedEmbedding, mlp: Mlp) -> tuple[_Look, _Layers]:
    return _Look.of(embedding.request, embedding), _Layers.of(mlp, candidate=False)


def _plain(weights: object) -> np.ndarray:
    return np.ascontiguousarray(weights.detach().numpy())  # type: ignore[attr-defined]


def _sigmoid(logits: np.ndarray) -> np.ndarray:
    found: np.ndarray = 1.0 / (1.0 + np.exp(-logits.astype(np.float64)))
    return found
