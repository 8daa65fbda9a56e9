"""One table for all id slots, and the two input blocks read through it. Pair rates join the candidate's dense inputs.

Every table of the spec keeps its ids 1, 2, ... in one fused [N, D] weight; the paddings of all of them are row 0, which
is zero and gets a gradient of zeros, or none. The gradient is sparse: models/optimisation/row_adam.py turns it into a
step of the rows seen. On a CPU with a compiler (models/compiled/kernels.py) ids, vectors and inputs are each walked
once forwards and once backwards (models/layers/table_reads.py), where plain torch, in which all of it is written as
well, takes three times as long.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from contracts.config.section import Numbers, Side
from contracts.features.feature_spec import BLOCK_SIDES, PADDING, FeatureSpec, IdSlot
from models.compiled import kernels
from models.examples.batches import FeatureBlock
from models.layers import number_encoding
from models.layers.own_rows import drawn, own_rows, put
from models.layers.pair_rate_features import PairRateFeatures
from models.layers.product_cross import FactorisedCrosses
from models.layers.table_reads import Inputs, Joined, Layout, Vectors, readable

Block = tuple["BlockReader", Tensor, Sequence[Tensor]]  # a reader, rows [B, W], and what follows their vectors [B, ...]
INITIAL_STD = 0.1
SMALLEST_FACTOR = 8  # of a product cross in a linear model, whose vectors have one entry


class BlockReader(nn.Module):
    """Where the slots of one block lie in the fused table, and how their vectors become one row of inputs.

    A slot of several columns (multi-valued, sequence) gives the mean over those that are not padding, else zero.
    Output width S x D + `further`: slots of one column, then the others, then products of crosses and dense inputs.
    """

    slots: tuple[IdSlot, ...]  # in the order of the output

    order: Tensor
    offsets: Tensor
    members: Tensor
    ends: Tensor
    tables: Tensor  # a number of each column's

    def __init__(self, slots: Sequence[IdSlot], further: int, starts: Mapping[str, int], dim: int) -> None:
        super().__init__()
        self.width = len(slots) * dim + further
        single, several = [s for s in slots if s.width == 1], [s for s in slots if s.width > 1]
        self.singles = len(single)
        self.slots = (*single, *several)
        columns = [(slot, slot.start + i) for slot in [*single, *several] for i in range(slot.width)]
        self.places = {slot.name: place for place, (slot, column) in reversed([*enumerate(columns)])}
        self._buffer("order", [column for _, column in columns], torch.int64)
        self.reach = max((column + 1 for _, column in columns), default=0)
        self._buffer("offsets", [starts[slot.name] for slot, _ in columns], torch.int32)
        tables = {start: number for number, start in enumerate(sorted({*starts.values()}))}
        self._buffer("tables", [tables[starts[slot.name]] for slot, _ in columns], torch.int64)
        self._buffer("ends", [*itertools.accumulate((s.width for s in several), initial=self.singles)][1:], torch.int64)
        owner = torch.tensor([several.index(slot) for slot, _ in columns[self.singles :]], dtype=torch.int64)
        members = F.one_hot(owner, max(len(several), 1)).float().T
        self.register_buffer("members", members.contiguous(), persistent=False)

    def _buffer(self, name: str, values: list[int], dtype: torch.dtype) -> None:
        self.register_buffer(name, torch.tensor(values, dtype=dtype), persistent=False)

    @property
    def layout(self) -> Layout:
        """Of its inputs."""
        return Layout(self.singles, self.ends, self.tables)

    def rows(self, ids: Tensor) -> Tensor:
        """Local ids [B, W] -> rows of the fused table [B, W], slots of one column first; padding -> row 0."""
        plain = ids.dtype == torch.int32 and ids.stride(1) == 1 and ids.shape[1] >= self.reach and self.order.is_cpu
        library = kernels.beside(ids) if plain and not torch.compiler.is_compiling() else None
        if library is not None:
            rows = ids.new_empty(len(ids), len(self.order))
            library.table_rows(ids.data_ptr(), ids.stride(0), self.order.data_ptr(), self.offsets.data_ptr(),
                               *rows.shape, torch.get_num_threads(), rows.data_ptr())
            return rows
        ordered = ids.index_select(1, self.order)
        return torch.where(ordered == PADDING, 0, ordered + self.offsets)

    def join(self, rows: Tensor, vectors: Tensor, *further: Tensor) -> Tensor:
        """Rows [B, W], their vectors [B, W, D] and further inputs -> [B, width]."""
        if readable(vectors, rows):
            return Joined.apply(self.layout, rows, vectors, *further)  # type: ignore[no-any-return]
        parts = [vectors[:, : self.singles].flatten(1), *further]
        if self.singles < rows.shape[1]:
            present = (rows[:, self.singles :] != PADDING).to(vectors.dtype)
            means = (self.members @ vectors[:, self.singles :]) / (present @ self.members.T).clamp(min=1.0)[:, :, None]
            parts.insert(1, means.flatten(1))
        return torch.cat(parts, dim=1)


class FusedEmbedding(nn.Module):
    """The fused weight and a reader per block. `candidate_sides` without "cross" leaves the item alone (two towers).

    With `tie`, slots of one table (a sequence and its target) share their rows; a linear model needs them apart.
    The candidate block may be wider than the slots of `candidate_sides`: items come first in it, the rest is cut off.
    Built where tables are dealt out (models/layers/own_rows.py), the weight is the rows `own` of it; `look_up`, from
    rows [n] to vectors [n, D], then asks the other processes (models/distributed).
    """

    look_up: Callable[[Tensor], Tensor] | None = None

    def __init__(
        self, spec: FeatureSpec, dim: int, candidate_sides: tuple[Side, ...] = BLOCK_SIDES["candidate"],
        tie: bool = True, numbers: Numbers = "plain",
    ) -> None:
        super().__init__()
        self.dim = dim
        slots = spec.id_slots(*BLOCK_SIDES["request"], *candidate_sides)
        sizes = {slot.table if tie else slot.name: slot.size for slot in slots}
        ends = dict(zip(sizes, itertools.accumulate(size - 1 for size in sizes.values()), strict=True))
        starts = {slot.name: ends[key] - sizes[key] + 1 for slot in slots for key in [slot.table if tie else slot.name]}
        self.starts = starts
        self.table_rows = rows = 1 + sum(size - 1 for size in sizes.values())
        self.weight, self.own = nn.Parameter(drawn(rows, dim, INITIAL_STD)), own_rows()
        self._rooms: list[Tensor] = []
        self.put(PADDING, torch.zeros(1, dim))
        crossed = "cross" in candidate_sides
        self.products = FactorisedCrosses(spec, max(dim, SMALLEST_FACTOR)) if crossed and spec.products() else None
        self.pair_rates = PairRateFeatures(spec, spec.pair_model) if crossed and spec.pair_model else None
        sides = BLOCK_SIDES["request"]
        self.request_encoding, self.candidate_encoding = (
            number_encoding.build(numbers, spec, of) for of in (sides, candidate_sides))
        self.request_numbers, self.candidate_numbers = (
            len(spec.dense_slots(*of)) + number_encoding.width(encoding)
            for of, encoding in ((sides, self.request_encoding), (candidate_sides, self.candidate_encoding)))
        self.candidate_numbers += self.pair_rates.width if self.pair_rates else 0
        self.request = BlockReader(spec.id_slots(*sides), self.request_numbers, starts, dim)
        further = self.candidate_numbers + (self.products.width if self.products else 0)
        self.candidate = BlockReader(spec.id_slots(*candidate_sides), further, starts, dim)

    def columns(self) -> list[tuple[str, int]]:
        """(slot, row that its id 0 would have) of every slot that is read."""
        return [(slot.name, self.starts[slot.name]) for reader in (self.request, self.candidate)
                for slot in reader.slots]

    def put(self, first: int, values: Tensor) -> None:
        """Gives rows of the table from `first` on the values [n, <= D] in their first columns."""
        put(self.weight, self.own, first, values)

    def vectors(self, *rows: Tensor) -> list[Tensor]:
        """Rows [B, W] of each block -> [B, W, D], read in one go."""
        if self.look_up is None and readable(self.weight):
            return [*Vectors.apply(self._rooms, self.weight, *rows)]
        asked = torch.cat([r.flatten() for r in rows])
        if self.look_up is None:
            flat = F.embedding(asked, self.weight, padding_idx=_padding(asked), sparse=True)
        else:
            flat = self.look_up(asked)
        parts = flat.split([r.numel() for r in rows])
        return [part.view(*r.shape, self.dim) for part, r in zip(parts, rows, strict=True)]

    def read(self, *blocks: Block) -> list[Tensor]:
        """Each block -> [B, width of its reader]: `vectors` and `join`, in one walk where vectors lie beside."""
        readers, rows, further = zip(*blocks, strict=True)
        if self.look_up is None and readable(self.weight, *rows):
            layouts = [reader.layout for reader in readers]
            return [*Inputs.apply(self._rooms, layouts, self.weight, *rows, *map(_one, further))]
        return [reader.join(of_block, vectors, *more)
                for (reader, of_block, more), vectors in zip(blocks, self.vectors(*rows), strict=True)]

    def forward(self, request: FeatureBlock, candidate: FeatureBlock) -> tuple[Tensor, Tensor]:
        """Inputs [1 or B, request.width] and [B, candidate.width]."""
        left, right = self.read((self.request, self.request.rows(request.ids), self.of_request(request)),
                                (self.candidate, self.candidate.rows(candidate.ids),
                                 self.of_candidate(request, candidate)))
        return left, right

    def of_request(self, request: FeatureBlock) -> list[Tensor]:
        """What follows the vectors: dense inputs and what encodes them, [1 or B, ...] each."""
        return _numbers(self.request_encoding, request.dense)

    def of_candidate(self, request: FeatureBlock, candidate: FeatureBlock) -> list[Tensor]:
        """What follows the vectors: products of crosses, dense inputs and what encodes them, pair rates; [B, ...]
        each."""
        products = [self.products(request.ids, candidate.ids)] if self.products else []
        pair_rates = [self.pair_rates(request.ids, candidate.ids)] if self.pair_rates else []
        return [*products, *_numbers(self.candidate_encoding, candidate.dense), *pair_rates]


def _one(further: Sequence[Tensor]) -> Tensor:
    """Side by side, float32 whatever the precision that some came in."""
    return (further[0] if len(further) == 1 else torch.cat([*further], 1)).float()


def _numbers(encoding: nn.Module | None, dense: Tensor) -> list[Tensor]:
    return [dense] if encoding is None else [dense, encoding(dense)]


def _padding(rows: Tensor) -> int | None:
    """What torch takes out of the gradient, by two walks over it: nothing where no row is the padding. To ask waits for
    a GPU; there models/optimisation/row_adam.py leaves it out."""
    return None if rows.is_cuda or bool(rows.all()) else PADDING


def item_slot(spec: FeatureSpec) -> IdSlot | None:
    """The slot that names the item: of the item's categorical slots the one with the most values."""
    slots = [slot for slot in spec.id_slots("item") if spec.by_name[slot.field].kind == "categorical"]
    return max(slots, key=lambda slot: slot.size, default=None)
