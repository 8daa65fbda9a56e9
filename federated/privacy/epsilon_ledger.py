"""What one client has spent: its answers at each level, and the noisy sums that it was in, over all runs and days.

Answers of one level cost their epsilon once, however often they are repeated; levels add up. Sums compose by adding
their Renyi costs at each order (federated/privacy/skellam.py). A client enters a sum when it uploads: whether it is
opened, it need not hear.
"""

from __future__ import annotations

import math
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from contracts.atomic_write import durable
from contracts.errors import ProtocolError
from federated.privacy import skellam


class Spent(BaseModel):
    """`levels`: name of a level -> epsilon of a row over any number of rounds (None: nothing bounds it); `rows` that
    were asked about; `sums` entered with noise, and their Renyi costs at each of skellam.ORDERS."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    levels: dict[str, float | None] = {}
    rows: int = 0
    sums: int = 0
    renyi: tuple[float, ...] = ()

    @property
    def epsilon_per_row(self) -> float | None:
        """Of all levels together."""
        known = [epsilon for epsilon in self.levels.values() if epsilon is not None]
        return sum(known) if len(known) == len(self.levels) else None

    def epsilon_noise(self, delta: float) -> float | None:
        """Of all sums together; None without any."""
        return skellam.from_renyi(self.renyi, delta) if self.sums else None


class EpsilonLedger:
    """One client's file; what is noted is on the disk before the call returns."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> Spent:
        """Raises ProtocolError where the file is damaged: a new one would forget what was spent."""
        if not self.path.exists():
            return Spent()
        try:
            return Spent.model_validate_json(self.path.read_bytes())
        except ValidationError as error:
            raise ProtocolError(f"{self.path} is no ledger ({error.error_count()} errors); restore it") from None

    def note_answers(self, level: str, epsilon: float, rows: int) -> None:
        """That the client answers about so many rows, at this level too."""
        spent = self.read()
        levels = {**spent.levels, level: epsilon if math.isfinite(epsilon) else None}
        self._write(spent, spent.model_copy(update={"levels": levels, "rows": max(rows, spent.rows)}))

    def note_sum(self, costs: list[float]) -> None:
        """That the client enters a sum which costs so much at each order."""
        spent = self.read()
        before = spent.renyi or (0.0,) * len(costs)
        together = tuple(old + new for old, new in zip(before, costs, strict=True))
        self._write(spent, spent.model_copy(update={"sums": spent.sums + 1, "renyi": together}))

    def _write(self, before: Spent, now: Spent) -> None:
        if now != before:
            with durable(self.path) as draft:
                draft.write_text(now.model_dump_json(), encoding="utf-8")
