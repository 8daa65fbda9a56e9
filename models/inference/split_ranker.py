"""A trained ranker as it serves: the request's half once, the candidates' half in as few steps as it has sums.

    begin(request)             what depends on the request alone: its inputs, its part of every first product
    logits(begun, candidates)  the rest
    slopes(begun, candidates)  how each logit changes along the network's inputs (serving/stages/sensitivity.py)

DNN, parallel DCNv2 and DIN are computed in numpy and compiled walks, ensembles member by member, other networks as they
are. `of` chooses; parity at load (serving/bundle/parity.py) compares what serves with what was trained.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import torch
from torch import nn

from contracts.features.encoding import Encoded
from models.examples.batches import FeatureBlock
from models.inference.ensemble import Ensemble
from models.inference.item_part import CrossColumns
from models.inference.numpy_mlp import NumpyMlp
from models.inference.split_din import SplitDin
from models.inference.split_inputs import Inputs, Slopes
from models.networks.dcn_v2 import CrossLayer, DcnV2
from models.networks.din import Din
from models.networks.dnn import Dnn


class Begun(Protocol):
    """What a ranker keeps of a request."""


class ServedRanker(Protocol):
    """`request` has 1 row, or as many as there are candidates. `item_part` [K, H] is what the candidates' items add to
    the first layer, where somebody knows it (models/inference/item_part.py); it is overwritten. `reads_numbers` says
    whether the candidates' `dense` is read beside it."""

    reads_numbers: bool

    def begin(self, request: Encoded) -> Begun: ...
    def logits(self, begun: Begun, candidate: Encoded, item_part: np.ndarray | None = None) -> np.ndarray: ...


def of(network: nn.Module, item_ids: int = 0) -> ServedRanker:
    """The form in which the network serves. `item_ids` columns of the candidates' ids are the items', which is needed
    where item parts will be given."""
    if isinstance(network, Ensemble):
        return SplitEnsemble([of(member, item_ids) for member in network.members])
    made = next((split for kind, split in _SPLIT.items() if isinstance(network, kind)), None)
    if made is None or not _plain(network):
        return PlainRanker(network)
    return made(network, item_ids)


def _plain(network: nn.Module) -> bool:
    """On the CPU in fp32, without batch normalisation, its MLP reading the inputs themselves."""
    if network.mlp.norms is not None or getattr(network, "stacked", False):  # type: ignore[union-attr]
        return False
    return all(one.device.type == "cpu" and one.dtype == torch.float32 for one in network.parameters())


def _block(encoded: Encoded) -> FeatureBlock:
    return FeatureBlock(torch.from_numpy(encoded.ids), torch.from_numpy(encoded.dense))


class PlainRanker:
    """The network as it is."""

    reads_numbers = True

    def __init__(self, network: nn.Module) -> None:
        self._network = network

    def begin(self, request: Encoded) -> FeatureBlock:
        return _block(request)

    @torch.inference_mode()
    def logits(self, begun: Begun, candidate: Encoded, item_part: np.ndarray | None = None) -> np.ndarray:
        """float32 [K]."""
        assert isinstance(begun, FeatureBlock)
        return self._network(begun, _block(candidate)).float().numpy()


class SplitEnsemble:
    """The mean of the members' logits. No table holds their items' parts."""

    reads_numbers = True

    def __init__(self, members: list[ServedRanker]) -> None:
        self._members = members

    def begin(self, request: Encoded) -> list[Begun]:
        return [member.begin(request) for member in self._members]

    def logits(self, begun: Begun, candidate: Encoded, item_part: np.ndarray | None = None) -> np.ndarray:
        """float32 [K]."""
        assert isinstance(begun, list)
        found = [member.logits(of_member, candidate) for member, of_member in zip(self._members, begun, strict=True)]
        return sum(found[1:], start=found[0]) / len(found)


class BegunDnn:
    """ids [1 or B, W], inputs [1 or B, R] and the MLP's part [1 or B, H]."""

    __slots__ = ("hidden", "ids", "inputs")

    def __init__(self, ids: np.ndarray, inputs: np.ndarray, hidden: np.ndarray) -> None:
        self.ids, self.inputs, self.hidden = ids, inputs, hidden


class SplitDnn:
    """logit = MLP([r; c]) + prior."""

    reads_numbers = False

    def __init__(self, network: Dnn | DcnV2, item_ids: int = 0) -> None:
        self.inputs, self.mlp = Inputs(network.embedding, network.prior), NumpyMlp(network.mlp)
        self.crossed = CrossColumns(self.inputs, self.mlp, item_ids)

    def begin(self, request: Encoded) -> BegunDnn:
        inputs = self.inputs.request(request)
        return BegunDnn(request.ids, inputs, self.mlp.request_part(inputs))

    def logits(self, begun: Begun, candidate: Encoded, item_part: np.ndarray | None = None) -> np.ndarray:
        """float32 [K]."""
        assert isinstance(begun, BegunDnn)
        if item_part is None:
            found = self.mlp(begun.hidden, self.right(begun, candidate))[:, 0]
        else:
            found = self._behind(begun, candidate, item_part)
        found += self.inputs.prior(candidate.ids)
        return found

    def _behind(self, begun: BegunDnn, candidate: Encoded, hidden: np.ndarray) -> np.ndarray:
        """The MLP's [K], of the items' parts of its first layer."""
        columns = self.crossed.read(begun.ids, candidate.ids)
        return self.mlp.of_sum(hidden, begun.hidden, columns, self.crossed.matrix)[:, 0]

    def right(self, begun: Begun, candidate: Encoded) -> np.ndarray:
        """The candidates' inputs."""
        assert isinstance(begun, BegunDnn)
        return self.inputs.candidate(begun.ids, candidate)

    def slopes(self, begun: Begun, candidate: Encoded) -> tuple[Slopes, Slopes]:
        """Of the request's and of the candidates' inputs."""
        assert isinstance(begun, BegunDnn)
        right = self.right(begun, candidate)
        slopes = self.mlp.input_slopes(right @ self.mlp.candidate + begun.hidden)
        return Slopes(begun.inputs, slopes[0]), Slopes(right, slopes[1])


class _Cross:
    """One layer: its matrices in the order of their use, V and U, or W alone where it is of full rank."""

    def __init__(self, layer: CrossLayer) -> None:
        used = [part for part in (layer.down, layer.up) if isinstance(part, nn.Linear)]
        self.matrices = [np.ascontiguousarray(part.weight.detach().numpy().T) for part in used]
        self.bias = layer.up.bias.detach().numpy()

    def factor(self, x: np.ndarray) -> np.ndarray:
        """U (V x) + b."""
        for matrix in self.matrices:
            x = x @ matrix
        x += self.bias
        return x

    def back(self, slope: np.ndarray) -> np.ndarray:
        """V^T (U^T slope)."""
        for matrix in reversed(self.matrices):
            slope = slope @ matrix.T
        return slope


class SplitDcn(SplitDnn):
    """logit = MLP([r; c]) + w . x_L + prior: the DNN's inputs and MLP, crosses beside them."""

    reads_numbers = True

    def __init__(self, network: DcnV2, item_ids: int = 0) -> None:
        super().__init__(network, item_ids)
        self._crosses = [_Cross(layer) for layer in network.crosses]  # type: ignore[arg-type]
        assert network.cross_output is not None
        self._output = network.cross_output.weight.detach().numpy()[0]

    def logits(self, begun: Begun, candidate: Encoded, item_part: np.ndarray | None = None) -> np.ndarray:
        """float32 [K]."""
        assert isinstance(begun, BegunDnn)
        right = self.right(begun, candidate)
        found = self.mlp(begun.hidden, right)[:, 0] if item_part is None else self._behind(begun, candidate, item_part)
        start = _joined(begun.inputs, right)
        x = start.copy()
        for cross in self._crosses:
            step = cross.factor(x)
            step *= start
            x += step
        found += x @ self._output
        found += self.inputs.prior(candidate.ids)
        return found

    def slopes(self, begun: Begun, candidate: Encoded) -> tuple[Slopes, Slopes]:
        """Of the request's and of the candidates' inputs."""
        assert isinstance(begun, BegunDnn)
        right = self.right(begun, candidate)
        start, width = _joined(begun.inputs, right), begun.inputs.shape[1]
        x, factors = start, list[np.ndarray]()
        for cross in self._crosses:
            factors.append(cross.factor(x))
            x = x + start * factors[-1]
        slope, direct = np.broadcast_to(self._output, start.shape), np.zeros_like(start)
        for cross, factor in zip(reversed(self._crosses), reversed(factors), strict=True):
            direct += slope * factor
            slope = slope + cross.back(slope * start)
        whole = slope + direct
        left, own = self.mlp.input_slopes(right @ self.mlp.candidate + begun.hidden)
        return Slopes(begun.inputs, left + whole[:, :width]), Slopes(right, own + whole[:, width:])


def _joined(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """[1 or K, R] and [K, C] -> [K, R + C]."""
    found = np.empty((len(right), left.shape[1] + right.shape[1]), dtype=np.float32)
    found[:, : left.shape[1]], found[:, left.shape[1] :] = left, right
    return found


_SPLIT: dict[type[nn.Module], Callable[[Any, int], ServedRanker]] = {Dnn: SplitDnn, DcnV2: SplitDcn, Din: SplitDin}
