"""A bill is frozen and goes to JSON and back."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from contracts.release.bill import Bill, BillLine

BILL = Bill(since="2026-03-01", until="2026-03-02", by="advertiser",
            lines=(BillLine(payer="x", shown=3, clicks=1, amount=0.1),), amount=0.1, shown=3, clicks=1, unpriced=0,
            repeated=0, early=0, late=0, unknown=0, lost_calls=0)


def test_amounts_come_back_to_the_last_bit() -> None:
    third = BILL.model_copy(update={"amount": 1 / 3})
    assert Bill.model_validate_json(third.model_dump_json()) == third


def test_it_is_frozen_and_takes_no_unknown_word() -> None:
    with pytest.raises(ValidationError):
        BILL.amount = 1.0  # type: ignore[misc]
    with pytest.raises(ValidationError):
        Bill.model_validate({**BILL.model_dump(), "sum": 1.0})
