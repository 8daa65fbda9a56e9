"""The floor of the funnel: the same answer in straight lines.

    retrieve   the user's row and context ▶ tower ▶ faiss ▶ the channels' quotas
    prerank    the candidates' vectors ▶ the pre-ranker's MLP ▶ expected revenue ▶ the best 200
    rank       crosses ▶ the ranker's MLP, whose first layer reads what an item adds from the bundle's table
    rerank     a generalised second price auction ▶ names

Written by hand for the benchmark's own world (benchmarks/serving/funnel.py) on the same libraries, tables and weights,
with every shortcut that is exact: no checks, no deadline, no reports, no filters, rules or fallbacks. A ranker that is
no DNN is asked as it serves. Its slates are those of the funnel (tests/benchmarks/bare/test_bare_cascade.py), so
what the funnel takes beyond it is what the platform costs, not work that the floor has left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from benchmarks.bare.weights import Layers, look_and_layers, plain, sigmoid
from contracts.features.encoding import Encoded
from contracts.features.feature_spec import BLOCK_SIDES, FIRST_ID
from models.inference import split_ranker
from models.networks.dnn import Dnn
from serving.bundle.item_index import MAX_LISTS_READ, bounded
from serving.bundle.loaded_bundle import LoadedBundle
from serving.bundle.vector_rows import VectorRows

PER_THOUSAND = 1000.0


class Sold(NamedTuple):
    """An item of the slate, its calibrated click probability, its eCPM, and the price of a click."""

    item: str
    probability: float
    score: float
    price: float


class Asked(NamedTuple):
    """A request as far as it has come: the requester's ids and numbers, the user's vector, rows of candidates, and of
    ranked ones their click probabilities."""

    ids: np.ndarray
    dense: np.ndarray
    vector: np.ndarray
    rows: np.ndarray
    probabilities: np.ndarray


NOTHING = np.empty(0)


class _Requesters:
    """Users' rows and the context of a request, as one row of ids and one of numbers."""

    def __init__(self, bundle: LoadedBundle) -> None:
        spec = bundle.spec
        keys = bundle.users.keys_of(np.arange(len(bundle.users)))
        self._rows = {key: row for row, key in enumerate(keys)}
        self._ids, self._dense = np.asarray(bundle.users.ids), np.asarray(bundle.users.dense)
        self._missing, self._width = bundle.encoder.encode({}, "user", "context").ids, spec.id_width("user")
        values = bundle.encoder.vocabularies["values"].keys().to_pylist()
        known = {value: FIRST_ID + place for place, value in enumerate(values)}
        starts = {slot.name: slot.start for slot in spec.block_ids("request")}
        self._context = {field.name: (starts[field.name], known) for field in spec.of_side("context")}

    def __call__(self, user: str, context: Mapping[str, str]) -> tuple[int, np.ndarray, np.ndarray]:
        """The user's row, ids [1, W] and numbers [1, N]."""
        row, ids = self._rows[user], self._missing.copy()
        ids[0, : self._width] = self._ids[row]
        for name, value in context.items():
            start, known = self._context[name]
            ids[0, start] = known[value]
        return row, ids, self._dense[row][None]


class _Retrieval:
    """From all items to `retrieve.candidates`, by the channels of the world's settings."""

    def __init__(self, bundle: LoadedBundle) -> None:
        self._requesters = _Requesters(bundle)
        self._look, self._tower = look_and_layers(bundle.towers.embedding, bundle.towers.user)
        self._recent, self._neighbours = np.asarray(bundle.recent), np.asarray(bundle.neighbours)
        self._popularity, self._quotas = np.asarray(bundle.popularity), bundle.settings.retrieve
        self._index, self._width = bundle.index.faiss_index, bundle.index.vectors.shape[1]
        self._bounds = None
        if not bundle.index.exact:
            self._bounds = bounded(min(self._index.nlist, MAX_LISTS_READ), bundle.index.max_codes)
        self._closed = np.zeros(len(bundle.items), dtype=bool)

    def __call__(self, asked: tuple[str, Mapping[str, str]]) -> Asked:
        row, ids, dense = self._requesters(*asked)
        hidden = self._look.inputs(ids, dense) @ self._tower.first + self._tower.bias
        vector = self._tower.behind(hidden)[0]
        vector /= np.sqrt(vector @ vector)
        recent, closed = self._recent[row], self._closed
        closed[recent] = True
        near = self._near(vector, len(recent))
        closed[near] = True
        similar = self._similar(recent)
        closed[similar] = True
        left = self._quotas.candidates - len(near) - len(similar)
        popular = self._popularity[: 2 * left]
        popular = popular[~closed[popular]][:left]
        for rows in (recent, near, similar):
            closed[rows] = False
        return Asked(ids, dense, vector, np.concatenate([near, similar, popular]), NOTHING)

    def _near(self, vector: np.ndarray, seen: int) -> np.ndarray:
        query = np.zeros((1, self._width), dtype=np.float32)
        query[0, : len(vector)], query[0, len(vector)] = vector, 1.0
        found = self._index.search(query, self._quotas.two_tower + seen, params=self._bounds)[1][0]
        return found[~self._closed[found]][: self._quotas.two_tower]

    def _similar(self, recent: np.ndarray) -> np.ndarray:
        quota, known = self._quotas.item_to_item, self._neighbours.shape[1]
        for each in (min(-(-2 * quota // len(recent)), known), known):
            found = self._neighbours[recent, :each].T.ravel()
            found = found[~self._closed[found]]
            first = np.unique(found, return_index=True)[1]
            if len(first) >= quota or each == known:
                break
        first.sort()
        return found[first][:quota]


class _Prerank:
    """The best `prerank.keep` by expected revenue, in no order."""

    def __init__(self, bundle: LoadedBundle) -> None:
        network = bundle.pre_ranker
        assert network is not None
        self._layers = Layers.of(network.mlp, candidate=True)
        self._scale, size = np.float32(network.scale), bundle.settings.train.tower_dim
        product, item, mean = np.split(self._layers.first, (size, 2 * size))
        self._paired = self._scale * self._scale * (product + mean / np.float32(size))
        self._item, self._request = self._scale * item, self._scale * plain(network.mlp.first.request.T)
        self._vectors, self._keep = VectorRows(bundle.item_vectors), bundle.settings.prerank.keep
        self._bids = np.asarray(bundle.bids)

    def __call__(self, asked: Asked) -> Asked:
        folded = asked.vector[:, None] * self._paired
        folded += self._item
        hidden = self._vectors.take(asked.rows) @ folded
        hidden += asked.vector @ self._request + self._layers.bias
        revenue = self._bids[asked.rows] * sigmoid(self._layers.behind(hidden)[:, 0])
        return asked._replace(rows=asked.rows[np.argpartition(-revenue, self._keep)[: self._keep]])


class _Crosses:
    """Ids of the world's crosses, each of a field of the request and one of the items, [K, C]."""

    def __init__(self, bundle: LoadedBundle) -> None:
        spec, crosses = bundle.spec, bundle.spec.crosses()
        request, items = ({slot.name: slot for slot in spec.block_ids(side)} for side in BLOCK_SIDES)
        self._of_request = [request[field.parts[0]].start for field in crosses]
        self._of_item = np.array([items[field.parts[1]].start for field in crosses])
        self._sizes = np.array([items[field.parts[1]].size for field in crosses], dtype=np.int64)
        self._buckets = np.array([field.buckets for field in crosses], dtype=np.int64)
        self._items = np.asarray(bundle.items.ids)

    def __call__(self, request: np.ndarray, rows: np.ndarray) -> np.ndarray:
        codes = request[0, self._of_request].astype(np.int64) * self._sizes
        codes = codes + self._items[rows[:, None], self._of_item]
        codes %= self._buckets
        codes += FIRST_ID
        return codes


class _DnnRank:
    """Click probabilities of a DNN whose first layer reads what an item adds from the bundle's table."""

    def __init__(self, bundle: LoadedBundle, network: Dnn, table: np.ndarray) -> None:
        self._crosses, self._table = _Crosses(bundle), table
        self._look, self._layers = look_and_layers(network.embedding, network.mlp)
        reader, dim = network.embedding.candidate, network.embedding.dim
        slots, order = {slot.name: slot.start for slot in bundle.spec.block_ids("candidate")}, reader.order.tolist()
        places = np.array([order.index(slots[field.name]) for field in bundle.spec.crosses()])
        self._offsets = reader.offsets.numpy()[places]
        columns = (places[:, None] * dim + np.arange(dim)).reshape(-1)
        self._weight = np.ascontiguousarray(plain(network.mlp.first.candidate.T)[columns])

    def __call__(self, asked: Asked) -> Asked:
        crosses = self._crosses(asked.ids, asked.rows)
        crosses += self._offsets
        hidden = self._table.take(asked.rows, axis=0)
        hidden += self._look.inputs(asked.ids, asked.dense) @ self._layers.first + self._layers.bias
        hidden += self._look.weight.take(crosses, axis=0).reshape(len(hidden), -1) @ self._weight
        return asked._replace(probabilities=sigmoid(self._layers.behind(hidden)[:, 0]))


class _ServedRank:
    """Of another ranker, or without a table, as it serves."""

    def __init__(self, bundle: LoadedBundle) -> None:
        self._crosses, self._items = _Crosses(bundle), bundle.items
        self._ranker = split_ranker.of(bundle.ranker, bundle.spec.id_width("item"))

    def __call__(self, asked: Asked) -> Asked:
        crosses = self._crosses(asked.ids, asked.rows).astype(np.int32)
        candidate = Encoded(np.concatenate([self._items.ids[asked.rows], crosses], axis=1),
                            self._items.dense[asked.rows])
        logits = self._ranker.logits(self._ranker.begin(Encoded(asked.ids, asked.dense)), candidate)
        return asked._replace(probabilities=sigmoid(logits))


class _Auction:
    """Slots by eCPM; a click costs the smallest bid that keeps its slot."""

    def __init__(self, bundle: LoadedBundle) -> None:
        self._bids, self._reserve = np.asarray(bundle.bids), bundle.settings.rerank.reserve_price
        self._names = bundle.items.keys_of(np.arange(len(bundle.items)))

    def __call__(self, asked: Asked, limit: int) -> list[Sold]:
        bids = self._bids[asked.rows]
        revenue = PER_THOUSAND * bids.astype(np.float64) * asked.probabilities
        best = np.argpartition(-revenue, limit + 1)[: limit + 1]
        best = best[np.argsort(-revenue[best])]
        won = best[:limit]
        probabilities = asked.probabilities[won]
        price = np.minimum(np.maximum(revenue[best[1:]], self._reserve) / (PER_THOUSAND * probabilities), bids[won])
        names = [self._names[row] for row in asked.rows[won].tolist()]
        return [*map(Sold, names, probabilities.tolist(), revenue[won].tolist(), price.tolist())]


class BareCascade:
    """Over a bundle that `funnel.world` made."""

    def __init__(self, bundle: LoadedBundle) -> None:
        self.retrieve, self.prerank, self._auction = _Retrieval(bundle), _Prerank(bundle), _Auction(bundle)
        network, table = bundle.ranker, bundle.rank_table
        self.rank: Callable[[Asked], Asked] = _ServedRank(bundle)
        if isinstance(network, Dnn) and table is not None:
            self.rank = _DnnRank(bundle, network, np.asarray(table.rows))

    def __call__(self, user: str, context: Mapping[str, str], limit: int) -> list[Sold]:
        return self._auction(self.rank(self.prerank(self.retrieve((user, context)))), limit)

    def stages(self, limit: int) -> dict[str, Callable[[Any], Any]]:
        """Each takes what the one before it has made, the first the user and the context."""
        return {"retrieve": self.retrieve, "prerank": self.prerank, "rank": self.rank,
                "rerank": lambda asked: self._auction(asked, limit)}
