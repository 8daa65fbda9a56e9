"""A user as what they did: a causal transformer over items, in the manner of SASRec and eSASRec.

    x_0 = dropout(e(item) + p(place) + sum over told k of a_k(event)),  blocks,  u = LN(x_n);
    score of item i = u . e(i)   (one table e for both)

What is told of an event beside its item: models/interactions/told_events.py; a_k has a row for each gap of time, each
value of a column, and for unknown ones. All are 0 at first, so that an encoder starts as one that is told nothing.

With a `temperature` t both are divided by their lengths and the score is u . e(i) / t.

A row of items stands at the left, 0 behind it. Without `places` the order enters through the causal mask and the
blocks' distance bias alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor, nn
from torch.nn import functional as F

from models.layers.sequence_blocks import BLOCKS, Dropout

NARROW, WIDE, MANY = 64, 128, 100_000
Places = Literal["learned", "distance", "none"]


class EncoderSettings(BaseModel):
    """Shape of the encoder. `width` None: by the log, see `sized`; `length`: latest actions that are read; `factor`:
    inner width of the feed-forward part over `width`; `temperature` of cosines, 0: inner products as they are;
    `spread`: deviation of the items' first vectors.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    width: int | None = Field(None, ge=1)
    blocks: int = Field(1, ge=0)
    heads: int = Field(1, ge=1)
    block: Literal["transformer", "ligr", "hstu"] = "transformer"
    factor: int = Field(1, ge=1)
    length: int = Field(50, ge=1, le=1000)
    dropout: float = Field(0.3, ge=0, lt=1)
    places: Places = "distance"
    temperature: float = Field(0.07, ge=0)
    spread: float = Field(0.1, gt=0)

    def sized(self, actions: int) -> EncoderSettings:
        """With a width: NARROW for a log of fewer than `MANY` training actions, where WIDE finds no more in twice the
        time, WIDE for one of more."""
        return self.model_copy(update={"width": self.width or (WIDE if actions >= MANY else NARROW)})


class SequenceEncoder(nn.Module):
    """`table`: rows of the embedding, 0 (padding) and 1 (unknown) included; `told`: those of each thing that is told of
    events. NARROW where `settings` have no width."""

    def __init__(self, table: int, settings: EncoderSettings, told: Sequence[int] = ()) -> None:
        super().__init__()
        s = self.settings = settings.sized(0)
        width = s.width or NARROW
        self.items = nn.Embedding(table, width, padding_idx=0)
        self.places = nn.Embedding(s.length, width) if s.places == "learned" else None
        self.dropout = Dropout(s.dropout)
        self.blocks = nn.Sequential(*(
            BLOCKS[s.block](width, s.heads, s.length, s.dropout, s.factor, s.places == "distance")
            for _ in range(s.blocks)))
        self.norm = nn.LayerNorm(width)
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.xavier_normal_(parameter)
        nn.init.normal_(self.items.weight, 0.0, s.spread)
        nn.init.zeros_(self.items.weight[:1].detach())
        self.told = nn.ModuleList(nn.Embedding(rows, width, padding_idx=0) for rows in told)
        for embedding in self.told.parameters():
            nn.init.zeros_(embedding)

    def forward(self, items: Tensor, events: Tensor | None = None) -> Tensor:
        """int64 [U, L], L at most `length`, and [U, L, E], all unknown where there are none -> states [U, L, width]: at
        each place the user after that action."""
        x = self.items(items)
        for place, embedding in enumerate(self.told):
            told = (items > 0).long() if events is None or not events.shape[2] else events[:, :, place]
            x = x + embedding(told)
        if self.places is not None:
            x = x + self.places.weight[:items.shape[1]]
        x = self.norm(self.blocks(self.dropout(x)))
        return F.normalize(x, dim=2) / self.settings.temperature if self.settings.temperature else x

    def vectors(self, items: Tensor | None = None) -> Tensor:
        """int64 [n] -> [n, width], of all items [table, width] where none are named: inner products with users rank."""
        found = self.items.weight if items is None else self.items(items)
        return F.normalize(found, dim=1) if self.settings.temperature else found

    def users(self, items: Tensor, events: Tensor | None = None) -> Tensor:
        """As `forward` -> [U, width]: the user after the last action; the vector of an empty row is 0."""
        lengths = (items > 0).sum(1)
        last = self(items, events)[torch.arange(len(items)), (lengths - 1).clamp(min=0)]
        return last * (lengths > 0)[:, None]
