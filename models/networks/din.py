"""DIN: the user's history weighed by its relevance to the candidate (Zhou et al., 2018, arXiv 1706.06978).

For a user-side sequence with keys k_1 .. k_L and the candidate's vector q of the same table:

    s_i = MLP([q, k_i, q - k_i, q * k_i])      one hidden layer
    a_i = exp(s_i) / (1 + sum_j exp(s_j))             over the entries that are not padding
    v   = sum_i a_i k_i                               joins the candidate's inputs

The 1 is a key "none of them" with value zero: as in the paper the weights need not add up to 1, an irrelevant history
fades, and an empty one gives v = 0. Since q - k is linear in q and k, the hidden layer is kept as three
blocks over q, k and q * k: the same functions, and the k block is computed once per request. The mean over the history
stays among the request's inputs. A history of one entry is an ordinary field.

With `blocks` the keys are first read in their order by so many transformer blocks (models/layers/sequence_blocks.py):
k_i then knows what was done after it, so that an entry counts by where it lies in the history as well. Nothing of that
depends on the candidate: it is computed once per request too.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from contracts.config.section import Numbers
from contracts.features.feature_spec import PADDING, FeatureSpec, IdSlot
from models.examples.batches import ExampleSet, FeatureBlock
from models.layers.embedding import FusedEmbedding
from models.layers.item_prior import ItemPrior
from models.layers.losses import prior_logit
from models.layers.mlp import Mlp
from models.layers.sequence_blocks import Transformer

ATTENTION_HIDDEN = 32
FACTOR = 2  # of a block's inner width over the width of an embedding


class TargetAttention(nn.Module):
    """The weights a_i of the formula, for one pair of a history and its target."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.query = nn.Linear(dim, ATTENTION_HIDDEN)
        self.key = nn.Linear(dim, ATTENTION_HIDDEN, bias=False)
        self.product = nn.Linear(dim, ATTENTION_HIDDEN, bias=False)
        self.score = nn.Linear(ATTENTION_HIDDEN, 1)

    def forward(self, query: Tensor, keys: Tensor, present: Tensor) -> Tensor:
        """query [B, D], keys [1 or B, L, D], present [1 or B, L] bool -> [B, D]."""
        product = self.product(query[:, None] * keys)
        hidden = torch.relu(self.query(query)[:, None] + self.key(keys) + product)
        scores = self.score(hidden).squeeze(2).float().masked_fill(~present, -torch.inf)
        nothing = scores.new_zeros(len(scores), 1)
        weights = torch.softmax(torch.cat([scores, nothing], dim=1), dim=1)[:, :-1]
        return (weights.to(keys.dtype)[:, :, None] * keys).sum(dim=1)


def in_their_order(context: nn.Module, keys: Tensor, present: Tensor) -> tuple[Tensor, Tensor]:
    """keys [B, L, D] and present [B, L] after the blocks `context`, padding last, where a causal block does not see it;
    both as they are where there are no blocks."""
    if not len(context):  # type: ignore[arg-type]
        return keys, present
    order = (~present).int().argsort(dim=1, stable=True)
    return context(keys.gather(1, order[:, :, None].expand_as(keys))), present.gather(1, order)


def _block(dim: int, length: int, dropout: float) -> Transformer:
    """One that adds nothing before it is trained: it would drown the small vectors of an untrained embedding."""
    block = Transformer(dim, 1, length, dropout, FACTOR, True)
    for last in (block.attention.out, block.forward_layers[-1]):
        for parameter in last.parameters():
            nn.init.zeros_(parameter)
    return block


class Din(nn.Module):
    """Without a sequence in the spec this is the plain deep ranker. `context`: the blocks of each sequence."""

    def __init__(
        self, spec: FeatureSpec, dim: int, hidden: tuple[int, ...], dropout: float, blocks: int = 0,
        numbers: Numbers = "plain",
    ) -> None:
        super().__init__()
        self.embedding = FusedEmbedding(spec, dim, numbers=numbers)
        self.prior = ItemPrior(spec)
        candidate = {slot.name: slot for slot in spec.block_ids("candidate")}
        sequences = [slot for slot in spec.block_ids("request") if slot.sequence and slot.width > 1]
        self.pairs: list[tuple[IdSlot, IdSlot]] = [
            (slot, candidate[spec.by_name[slot.field].of or ""]) for slot in sequences]
        self.attention = nn.ModuleList(TargetAttention(dim) for _ in self.pairs)
        self.context = nn.ModuleList(
            nn.Sequential(*(_block(dim, slot.width, dropout) for _ in range(blocks))) for slot, _ in self.pairs)
        candidate_width = self.embedding.candidate.width + len(self.pairs) * dim
        self.mlp = Mlp(self.embedding.request.width, candidate_width, hidden, dropout=dropout)

    def prepare(self, examples: ExampleSet) -> None:
        """Starts the output at the click rate of the training window."""
        nn.init.constant_(self.mlp.output_bias, prior_logit(examples))

    def rescale(self, scale: float, shift: float) -> None:
        """What the network adds to the prior of the item becomes scale * that + shift."""
        self.mlp.rescale_output(scale, shift)

    def forward(self, request: FeatureBlock, candidate: FeatureBlock) -> Tensor:
        """request of 1 or B rows, candidate of B rows -> logits [B]."""
        users, items = self.embedding.request, self.embedding.candidate
        user_rows, item_rows = users.rows(request.ids), items.rows(candidate.ids)
        left, right = self.embedding.vectors(user_rows, item_rows)
        interests = []
        for (sequence, target), attention, context in zip(self.pairs, self.attention, self.context, strict=True):
            place = users.places[sequence.name]
            span = slice(place, place + sequence.width)
            query = right[:, items.places[target.name]]
            keys = in_their_order(context, left[:, span], user_rows[:, span] != PADDING)
            interests.append(attention(query, *keys))
        joined = items.join(item_rows, right, *self.embedding.of_candidate(request, candidate))
        inputs = users.join(user_rows, left, *self.embedding.of_request(request)), torch.cat([joined, *interests], 1)
        return self.mlp(*inputs).squeeze(1) + self.prior(candidate)
