from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from contracts.errors import DataError
from contracts.features.event_features import ToldEvents
from serving.users.published_users import UserRow, Version, key_of, read_row, read_version, write_row

VERSION = Version(name="v", buckets=7, rows=3, published=datetime(2026, 1, 5, tzinfo=UTC))


def test_a_version_is_read_as_it_was_written() -> None:
    assert read_version(VERSION.model_dump_json().encode()) == VERSION


def test_every_user_has_one_bucket_and_all_buckets_are_used() -> None:
    users = [key_of(f"u{number}") for number in range(500)]
    assert {VERSION.bucket(user) for user in users} == set(VERSION.hashes())


LATER = VERSION.model_copy(update={"format": 2}).model_dump_json().encode()


@pytest.mark.parametrize("told", [b"", b"{}", b"[1]", LATER])
def test_what_another_release_wrote_is_refused(told: bytes) -> None:
    with pytest.raises(DataError, match="publish them"):
        read_version(told)


def test_a_row_comes_back_with_numbers_to_the_last_bit_and_nothing_for_missing() -> None:
    row = UserRow({"rate": 0.1 + 0.2, "age": 2**60, "new": True, "tags": ["é", "b"], "none": None}, ["i1", "i2"])
    assert read_row(write_row(row).encode()) == row
    events = ToldEvents([5, 0], {"kind": ["order", None]})
    assert read_row(write_row(UserRow({}, ["i1", "i2"], events)).encode()).told == events
    told = write_row(UserRow({"rate": float("nan"), "price": Decimal("1.5")}, []))
    assert json.loads(told)["values"] == {"rate": None, "price": 1.5}


@pytest.mark.parametrize("value", [float("inf"), b"bytes", object()])
def test_what_json_cannot_say_is_refused(value: object) -> None:
    with pytest.raises(DataError, match="cannot be published"):
        write_row(UserRow({"x": value}, []))


@pytest.mark.parametrize("told", [b"", b"{", b"[]", b'{"values": {}}', b'{"values": 3, "recent": []}'])
def test_what_is_no_row_is_refused(told: bytes) -> None:
    with pytest.raises(DataError, match="cannot be read"):
        read_row(told)
