from __future__ import annotations

import pytest

from contracts.shown import MOST, short, shown, without_passwords


@pytest.mark.parametrize(("text", "said"), [
    ("phone", "phone"), ("a" * MOST, "a" * MOST), ("a" * (MOST + 1), "a" * (MOST - 1) + "…"), ("", ""),
    ("one\nERROR two", "one\\nERROR two"), ("\x1b[31m", "\\x1b[31m"), ("a\u2028b", "a\\u2028b"), ("Zürich", "Zürich"),
])
def test_a_text_is_short_and_of_one_line(text: str, said: str) -> None:
    assert short(text) == said


def test_a_value_is_short_whatever_it_is() -> None:
    assert shown("x") == "'x'"
    assert shown(3.5) == "3.5"
    for value in ("\0" * 4_000_000, b"\0" * 4_000_000, list(range(1000)), 10**400):
        assert len(shown(value)) == MOST
        assert shown(value).isprintable()


@pytest.mark.parametrize(("text", "said"), [
    ("at postgresql://me:hunter2@host:5432/db.", "at postgresql://me:***@host:5432/db."),
    ("http://me:hun:ter@2@host", "http://me:***@host"), ("https://:hunter2@host/x", "https://:***@host/x"),
    ("sqlite:////tmp/a@b/mlflow.db", "sqlite:////tmp/a@b/mlflow.db"), ("http://host:5000/me@x", "http://host:5000/me@x"),
])
def test_passwords_of_addresses_are_left_out(text: str, said: str) -> None:
    assert without_passwords(text) == said
