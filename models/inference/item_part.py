"""What the items themselves add to a ranker's first layer: computed once per item, read once per candidate.

    first layer   W [r; i; c] + b = (W_r r + b) + W_i i + W_c c     i an item's inputs, c its crosses with the request

W_i i is one row of a table (`table`), which a bundle holds beside the ranker's weights; per request remain the sum of
two rows and the crosses' few columns.
"""

from __future__ import annotations

import numpy as np
from torch import nn

from contracts.features.encoding import Encoded
from contracts.features.feature_spec import PADDING
from models.inference.block_inputs import BlockInputs, columns_at
from models.inference.number_columns import NumberColumns
from models.inference.numpy_mlp import NumpyMlp
from models.inference.packed_matrix import PackedMatrix
from models.inference.split_inputs import Inputs
from models.layers import number_encoding
from models.networks.dcn_v2 import DcnV2
from models.networks.din import Din
from models.networks.dnn import Dnn

BLOCK = 8192  # items at a time


class CrossColumns:
    """The columns of a network's candidate inputs that are not the items' alone, and their weights.

    `item_ids` is how many id columns of the candidate block are the items'; crosses have one column each.
    """

    def __init__(self, inputs: Inputs, mlp: NumpyMlp, item_ids: int) -> None:
        self._inputs, embedding = inputs, inputs.embedding
        reader, dim = embedding.candidate, embedding.dim
        order = reader.order.numpy()
        crossed = np.flatnonzero(order[: reader.singles] >= item_ids)
        self._columns, self._offsets = columns_at(order[crossed]), reader.offsets.numpy()[crossed]
        self._weight = embedding.weight.detach().numpy()
        vectors = (crossed[:, None] * dim + np.arange(dim)).reshape(-1)
        products = len(reader.slots) * dim
        rates = reader.width - (embedding.pair_rates.width if embedding.pair_rates is not None else 0)
        further = np.r_[products : products + (embedding.products.width if embedding.products is not None else 0),
                        rates : reader.width]
        self.matrix = PackedMatrix(mlp.candidate[np.concatenate([vectors, further]).astype(np.int64)])

    def __call__(self, request_ids: np.ndarray, candidate_ids: np.ndarray) -> np.ndarray | float:
        """W_c c, [K, H]."""
        columns = self.read(request_ids, candidate_ids)
        return 0.0 if columns is None else columns @ self.matrix.plain

    def read(self, request_ids: np.ndarray, candidate_ids: np.ndarray) -> np.ndarray | None:
        """c, [K, C]; None where there are no such columns. `matrix` is W_c', [C, H]."""
        if not len(self.matrix):
            return None
        rows = candidate_ids[:, self._columns] + self._offsets  # a cross always has an id
        parts = [self._weight.take(rows, axis=0).reshape(len(rows), -1),
                 *self._inputs.products(request_ids, candidate_ids), *self._inputs.rates(request_ids, candidate_ids)]
        return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)


class ChangedColumns:
    """W_i (i' - i) of items whose inputs are i' in place of the table's i: in some columns, `ids` of the candidate
    block, of one id each, and `dense` ones with the ramps or waves that are made of them.
    """

    def __init__(self, inputs: Inputs, mlp: NumpyMlp, ids: np.ndarray, dense: np.ndarray) -> None:
        embedding = inputs.embedding
        reader, dim = embedding.candidate, embedding.dim
        order = reader.order.numpy()
        places = np.array([int(np.flatnonzero(order == column)[0]) for column in ids.tolist()], dtype=np.int64)
        assert (places < reader.singles).all()  # of several ids in one column the mean is read
        self._ids, self._dense, self._offsets = ids, dense, reader.offsets.numpy()[places]
        self._numbers = NumberColumns(embedding.candidate_encoding, dense)
        self._weight = embedding.weight.detach().numpy()
        vectors = (places[:, None] * dim + np.arange(dim)).reshape(-1)
        plain = embedding.candidate_numbers - number_encoding.width(embedding.candidate_encoding)
        plain -= 0 if embedding.pair_rates is None else embedding.pair_rates.width
        first = len(reader.slots) * dim + (0 if embedding.products is None else embedding.products.width)
        numbers = first + self._numbers.places(plain)
        self._matrix = np.ascontiguousarray(mlp.candidate[np.concatenate([vectors, numbers]).astype(np.int64)])

    def add(self, part: np.ndarray, before: Encoded, now: Encoded) -> None:
        """To the items' part of the table, [K, H], whose inputs were `before` [K, ...]; `now` may have crosses too."""
        ids, old = now.ids[:, self._ids], before.ids[:, self._ids]
        if np.array_equal(ids, old) and np.array_equal(now.dense[:, self._dense], before.dense[:, self._dense]):
            return
        numbers = [made - known for made, known in
                   zip(self._numbers(now.dense), self._numbers(before.dense), strict=True)]
        part += np.concatenate([self._vectors(ids) - self._vectors(old), *numbers], axis=1) @ self._matrix

    def _vectors(self, ids: np.ndarray) -> np.ndarray:
        """[K, columns x D]."""
        rows = np.where(ids == PADDING, 0, ids + self._offsets)
        return self._weight.take(rows, axis=0).reshape(len(ids), -1)


class ItemPart:
    """W_i i of any items, by a network whose weights stay as they are."""

    def __init__(self, network: Dnn | DcnV2 | Din) -> None:
        embedding = network.embedding
        self._reader = BlockInputs(embedding.candidate, embedding)
        self._numbers = NumberColumns(embedding.candidate_encoding)
        self._weight = NumpyMlp(network.mlp).candidate[: self._reader.width]  # behind them those of DIN's interests
        self._columns = len(embedding.candidate.order)
        self._products = 0 if embedding.products is None else embedding.products.width
        self._rates = 0 if embedding.pair_rates is None else embedding.pair_rates.width

    def __call__(self, items: Encoded) -> np.ndarray:
        """[I, ...] -> float32 [I, H]."""
        found = np.empty((len(items.ids), self._weight.shape[1]), dtype=np.float32)
        crosses = self._columns - items.ids.shape[1]
        for start in range(0, len(found), BLOCK):
            ids, dense = items.ids[start : start + BLOCK], items.dense[start : start + BLOCK]
            nothing = np.full((len(ids), crosses), PADDING, dtype=ids.dtype)  # whose vectors are zero
            found[start : start + BLOCK] = self._reader(
                np.concatenate([ids, nothing], axis=1), np.zeros((len(ids), self._products), np.float32),
                *self._numbers(dense), np.zeros((len(ids), self._rates), np.float32)) @ self._weight
        return found


def item_part(network: nn.Module) -> ItemPart | None:
    """None for a network whose first layer reads something else."""
    if not isinstance(network, Dnn | DcnV2 | Din) or network.mlp.norms is not None:
        return None
    return None if isinstance(network, DcnV2) and network.stacked else ItemPart(network)


def table(network: nn.Module, items: Encoded) -> np.ndarray | None:
    """W_i i of items [I, ...], float32 [I, H]; None as `item_part`."""
    part = item_part(network)
    return None if part is None else part(items)
