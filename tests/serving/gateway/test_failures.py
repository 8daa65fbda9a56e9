from __future__ import annotations

import json

import pytest

from serving.gateway import failures


@pytest.mark.parametrize(("status", "http"), [
    ("INVALID_ARGUMENT", 400), ("UNAUTHENTICATED", 401), ("PERMISSION_DENIED", 403), ("RESOURCE_EXHAUSTED", 429),
    ("UNAVAILABLE", 503), ("DEADLINE_EXCEEDED", 504), ("INTERNAL", 500), ("UNKNOWN", 500)])
def test_each_status_has_its_number(status: str, http: int) -> None:
    assert failures.refused(status, "why").status_code == http


def test_callers_are_told_when_to_come_again_where_that_helps() -> None:
    assert failures.refused("RESOURCE_EXHAUSTED", "full").headers["retry-after"] == "1"
    assert "retry-after" not in failures.refused("INVALID_ARGUMENT", "no").headers


def test_fields_are_said_where_there_are_any() -> None:
    told = json.loads(bytes(failures.refused("INVALID_ARGUMENT", "no", {"limit": "is 0"}).body))
    assert told == {"error": {"status": "INVALID_ARGUMENT", "message": "no", "fields": {"limit": "is 0"}}}
    assert "fields" not in json.loads(bytes(failures.refused("INTERNAL", "no").body))["error"]
