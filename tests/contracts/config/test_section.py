from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from pydantic import ValidationError

from contracts.config.section import Instant, Section, instant
from contracts.errors import ConfigError


class When(Section):
    at: Instant
    seconds: float = 0.0


@pytest.mark.parametrize("text", ["2026-01-05", "2026-01-05T00:00:00", "2026-01-05T02:00:00+02:00"])
def test_a_time_without_a_zone_is_utc(text: str) -> None:
    assert instant(text) == When.model_validate({"at": text}).at == datetime(2026, 1, 5, tzinfo=UTC)


def test_toml_dates_and_times_are_instants() -> None:
    midnight = datetime(2026, 1, 5, tzinfo=UTC)
    east = midnight.astimezone(timezone(timedelta(hours=2)))
    found = [When.model_validate({"at": value}).at for value in (midnight.date(), midnight.replace(tzinfo=None), east)]
    assert found == [midnight] * 3


def test_no_time_stays_none_and_another_text_is_refused() -> None:
    assert instant(None) is None
    with pytest.raises(ConfigError, match="'soon' is no time; write it as in"):
        instant("soon")


def test_a_section_is_frozen_and_refuses_unknown_keys() -> None:
    made = When.model_validate({"at": "2026-01-05"})
    with pytest.raises(ValidationError):
        made.at = datetime(2026, 1, 6, tzinfo=UTC)  # type: ignore[misc]
    with pytest.raises(ValidationError):
        When.model_validate({"at": "2026-01-05", "when": 1})


@pytest.mark.parametrize("seconds", [float("inf"), -float("inf"), float("nan")])
def test_a_number_without_end_or_that_is_none_is_refused(seconds: float) -> None:
    with pytest.raises(ValidationError, match="finite number"):
        When.model_validate({"at": "2026-01-05", "seconds": seconds})
