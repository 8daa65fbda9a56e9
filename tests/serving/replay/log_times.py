"""When the log of the tests begins, when its test window does, and how long it is."""

from __future__ import annotations

from datetime import UTC, datetime

START, TEST = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 5, tzinfo=UTC)
HOURS = 144
