"""DIN as it serves (models/networks/din.py): all that depends on the request's history is one matrix per request.

    hidden_i = ReLU(q (W_q + diag(k_i) W_product) + b + k_i W_key)      for every key k_i at once: q A + c
    s_i      = hidden_i . w + b_s

Keys come out of the network's blocks, where it has some, before all that: once per request as well.

With a row of the request per candidate (parity, reasons) the formula is computed as it stands.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import nn

from contracts.features.encoding import Encoded
from contracts.features.feature_spec import PADDING
from models.inference.item_part import CrossColumns
from models.inference.numpy_mlp import NumpyMlp
from models.inference.split_inputs import Inputs, Slopes
from models.networks.din import Din, TargetAttention, in_their_order


class History(NamedTuple):
    """Of one sequence: keys [1 or B, L, D], present [1 or B, L] bool; A' [D, L x H] and c [L x H] of one request."""

    keys: np.ndarray
    present: np.ndarray
    matrix: np.ndarray | None
    offset: np.ndarray | None


class BegunDin(NamedTuple):
    """ids [1 or B, W], inputs [1 or B, R], the MLP's part [1 or B, H], a history per sequence."""

    ids: np.ndarray
    inputs: np.ndarray
    hidden: np.ndarray
    histories: list[History]


class _Attention:
    """The weights of one history and its target."""

    def __init__(self, layer: TargetAttention) -> None:
        parts = (layer.query, layer.key, layer.product)
        self._query, self._key, self._product = (part.weight.detach().numpy().T.copy() for part in parts)
        self._bias = layer.query.bias.detach().numpy()
        self._score, self._score_bias = layer.score.weight.detach().numpy()[0], float(layer.score.bias.detach())

    def begin(self, keys: np.ndarray, present: np.ndarray) -> History:
        if len(keys) > 1:
            return History(keys, present, None, None)
        folded = self._query[:, None] + keys[0].T[:, :, None] * self._product[:, None]
        offset = keys[0] @ self._key + self._bias
        return History(keys, present, folded.reshape(len(folded), -1), offset.reshape(-1))

    def interest(self, history: History, query: np.ndarray) -> np.ndarray:
        """query [K, D] -> [K, D]."""
        hidden = self._hidden(history, query)
        np.maximum(hidden, 0.0, out=hidden)
        scores = np.where(history.present, hidden @ self._score + self._score_bias, -np.inf)
        top = np.maximum(scores.max(axis=1, keepdims=True, initial=-np.inf), 0.0)
        weights = np.exp(scores - top)
        weights /= weights.sum(axis=1, keepdims=True) + np.exp(-top)
        if len(history.keys) == 1:
            return weights @ history.keys[0]
        return (weights[:, :, None] * history.keys).sum(axis=1)

    def _hidden(self, history: History, query: np.ndarray) -> np.ndarray:
        """[K, L, H] before the ReLU."""
        if history.matrix is not None:
            found = query @ history.matrix
            found += history.offset
            return found.reshape(len(query), history.keys.shape[1], -1)
        product = (query[:, None] * history.keys) @ self._product
        return product + history.keys @ self._key + (query @ self._query + self._bias)[:, None]


@torch.inference_mode()
def _read(context: nn.Module, keys: np.ndarray, present: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """keys [1 or B, L, D] and present [1 or B, L] after the network's blocks."""
    read = in_their_order(context, torch.from_numpy(keys), torch.from_numpy(present))
    return read[0].numpy(), read[1].numpy()


class SplitDin:
    """logit = MLP([r; c, interests]) + prior."""

    reads_numbers = False

    def __init__(self, network: Din, item_ids: int = 0) -> None:
        embedding = network.embedding
        self.inputs, self.mlp = Inputs(embedding, network.prior), NumpyMlp(network.mlp)
        self.crossed = CrossColumns(self.inputs, self.mlp, item_ids)
        interests = self.mlp.candidate[embedding.candidate.width :]
        self._interests = [interests[start : start + embedding.dim]
                           for start in range(0, len(interests), embedding.dim)]
        self.dim, self.interest_fields = embedding.dim, [(one.field, other.field) for one, other in network.pairs]
        self._weight = embedding.weight.detach().numpy()
        self._attention = [_Attention(layer) for layer in network.attention]  # type: ignore[arg-type]
        self._context = list(network.context)
        self._spans = [slice(sequence.start, sequence.start + sequence.width) for sequence, _ in network.pairs]
        self._targets = [target.start for _, target in network.pairs]
        self._starts = [(embedding.starts[sequence.name], embedding.starts[target.name])
                        for sequence, target in network.pairs]

    def begin(self, request: Encoded) -> BegunDin:
        inputs = self.inputs.request(request)
        histories = [
            attention.begin(*_read(
                context, self._vectors(request.ids[:, span], start), request.ids[:, span] != PADDING))
            for attention, context, span, (start, _)
            in zip(self._attention, self._context, self._spans, self._starts, strict=True)]
        return BegunDin(request.ids, inputs, self.mlp.request_part(inputs), histories)

    def logits(self, begun: object, candidate: Encoded, item_part: np.ndarray | None = None) -> np.ndarray:
        """float32 [K]."""
        assert isinstance(begun, BegunDin)
        if item_part is None:
            found = self.mlp(begun.hidden, self.right(begun, candidate))[:, 0]
        else:
            item_part += begun.hidden
            item_part += self.crossed(begun.ids, candidate.ids)
            for interest, weight in zip(self._interest(begun, candidate), self._interests, strict=True):
                item_part += interest @ weight
            found = self.mlp.after_first(item_part)[:, 0]
        found += self.inputs.prior(candidate.ids)
        return found

    def slopes(self, begun: object, candidate: Encoded) -> tuple[Slopes, Slopes]:
        """Of the request's and of the candidates' inputs, interests last; what moves an interest is left out."""
        assert isinstance(begun, BegunDin)
        right = self.right(begun, candidate)
        slopes = self.mlp.input_slopes(right @ self.mlp.candidate + begun.hidden)
        return Slopes(begun.inputs, slopes[0]), Slopes(right, slopes[1])

    def right(self, begun: object, candidate: Encoded) -> np.ndarray:
        """The candidates' inputs, interests last."""
        assert isinstance(begun, BegunDin)
        return np.concatenate([self.inputs.candidate(begun.ids, candidate), *self._interest(begun, candidate)], axis=1)

    def _interest(self, begun: BegunDin, candidate: Encoded) -> list[np.ndarray]:
        """[K, D] per history."""
        return [
            attention.interest(history, self._vectors(candidate.ids[:, target], start))
            for attention, history, target, (_, start)
            in zip(self._attention, begun.histories, self._targets, self._starts, strict=True)]

    def _vectors(self, ids: np.ndarray, start: int) -> np.ndarray:
        """Of ids of one table, which begins at `start`; padding reads row 0."""
        return self._weight.take(np.where(ids == PADDING, 0, ids + start), axis=0)
