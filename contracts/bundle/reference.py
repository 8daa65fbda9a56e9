"""What a bundle was made from and would show, in few numbers: what is served is held against it (reference.json).

    fields        user and context fields as in the training window, but for those made from the clock, and for the
                  histories below; item fields as in the slates below
    histories     fields that grow with the log, as whoever asks next is to have them: sequences of validation's users
                  in the bundle's own table, counters of validation's rows
    scores        calibrated probabilities of the items in the bundle's own slates for requests of the validation window
    calibration   predicted over observed clicks of the validation window's rows, None where that says nothing

`rows` counts the training rows, `shown` the items of the slates, which `fields` and `scores` were counted on, and
`histories` the rows of those fields.
"""

from __future__ import annotations

from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, ValidationError

from contracts.atomic_write import write_json
from contracts.errors import BundleError
from contracts.features.drift import ColumnProfile

FILE = "reference.json"


class Reference(BaseModel):
    """Bundles of earlier releases, and those made without examples, have none."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    rows: int
    shown: int
    fields: dict[str, ColumnProfile]
    scores: ColumnProfile
    calibration: float | None = None
    histories: dict[str, int] = {}

    def counted(self, field: str, of_item: bool) -> int:
        """Rows that its profile is of."""
        return self.shown if of_item else self.histories.get(field, self.rows)

    def write(self, folder: Path) -> None:
        write_json(folder / FILE, self.model_dump(mode="json"), indent=None)

    @classmethod
    def read(cls, folder: Path) -> Self | None:
        """Raises BundleError where it is damaged."""
        path = folder / FILE
        if not path.exists():
            return None
        try:
            return cls.model_validate_json(path.read_bytes())
        except ValidationError as error:
            raise BundleError(f"{path} is damaged ({error.errors()[0]['msg']}); assemble the bundle again") from None
