"""One field of a row."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from contracts.config.section import KeyType, Kind, Section, Side
from contracts.duration import Duration, label

DEFAULT_GRANULARITIES = (10,)


class FieldConfig(Section):
    """One configured field; counters expand into one feature per statistic and window.

    kind            what it needs
    categorical     `column`
    numeric         `column`, `granularities` (numbers of quantile bins), `log`
    multi_valued    `column` holding an array (or text cut at `separator`), `length` values kept
    sequence        the last `length` values of `of` (an item-side categorical) the user clicked, newest first
    counter         `by` (columns of one side), `windows`, `statistics`
    cross           `parts` (names of fields, or `field#bins`), hashed into `buckets` or, when 0, a fitted vocabulary
    """

    name: str = Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    kind: Kind
    side: Side
    column: str | None = Field(None, description="none: as the name")
    key_type: KeyType = Field("string", description="what the raw values are")
    min_count: int = Field(2, ge=1, description="rarer values count as unknown")
    granularities: tuple[int, ...] = Field((), description="numbers of quantile bins, one id slot each; none given: 10")
    log: bool = Field(False, description="scale ln(1 + x)")
    separator: str | None = Field(None, description="where the values are one text")
    length: int = Field(1, ge=1, le=200, description="values kept")
    of: str | None = Field(None, description="of a sequence: the item field it remembers")
    by: tuple[str, ...] = Field((), description="of a counter: columns of one side")
    windows: tuple[Duration, ...] = Field((), description="of a counter")
    statistics: tuple[Literal["count", "rate"], ...] = Field(("count", "rate"), description="of a counter")
    prior_strength: float = Field(20.0, gt=0, description="of a rate: pseudo-impressions at the base rate")
    parts: tuple[str, ...] = Field((), description="of a cross")
    buckets: int = Field(0, ge=0, description="of a cross; 0: a fitted vocabulary")
    representation: Literal["embedding", "product"] = Field(
        "embedding", description="of a cross: vectors of its own, or the product of factors of its parts"
    )
    cost: float = Field(1.0, ge=0, description="of one look-up, in plain look-ups; the pre-ranker is charged it")

    @property
    def source_column(self) -> str:
        """The column of the log or of its side's table that the field is read from."""
        return self.column or self.name

    def counters(self) -> list[tuple[str, str, int]]:
        """(feature name, statistic, window in seconds) of every feature a counter expands into."""
        return [(f"{self.name}_{s}_{label(w)}", s, w) for w in self.windows for s in self.statistics]

    def features(self) -> list[str]:
        """Names of the features that the field stands for: its own, or those that a counter expands into."""
        return [name for name, _, _ in self.counters()] or [self.name]

    def bins(self) -> tuple[int, ...]:
        """Numbers of bins of each feature that is a number."""
        return (self.granularities or DEFAULT_GRANULARITIES) if self.kind in ("numeric", "counter") else ()

    @model_validator(mode="after")
    def _complete(self) -> FieldConfig:
        needs: dict[str, tuple[str, ...]] = {"sequence": ("of",), "counter": ("by", "windows"), "cross": ("parts",)}
        missing = [key for key in needs.get(self.kind, ()) if not getattr(self, key)]
        if missing:
            raise ValueError(f"field {self.name!r} of kind {self.kind} needs {', '.join(missing)}")
        if self.kind == "cross" and (self.side != "cross" or len(self.parts) < 2):
            raise ValueError(f"cross {self.name!r} needs side = 'cross' and at least two parts")
        if self.kind == "sequence" and self.side != "user":
            raise ValueError(f"sequence {self.name!r} is a history of the user: set side = 'user'")
        if self.kind == "counter" and self.side not in ("user", "item"):
            raise ValueError(f"counter {self.name!r}: side must be 'user' or 'item', not {self.side!r}")
        if self.kind != "cross" and self.side == "cross":
            raise ValueError(f"field {self.name!r}: only kind 'cross' may have side 'cross'")
        return self
