"""A seal is of each byte, and of the text that it stands in."""

from __future__ import annotations

import json

from contracts.bundle.seal import UNSEALED, is_intact, sealed

TEXT = json.dumps({"a": 1, "seal": UNSEALED, "b": "end"}).encode()


def test_what_was_sealed_is_intact_and_no_byte_of_it_may_change() -> None:
    text = sealed(TEXT)
    seal = json.loads(text)["seal"]
    assert is_intact(text, seal)
    for place, byte in enumerate(text):
        for other in (byte ^ 1, byte ^ 32, byte ^ 255):
            assert not is_intact(text[:place] + bytes([other]) + text[place + 1 :], seal)
    assert not is_intact(text + b" ", seal)
    assert not is_intact(text[:-1], seal)


def test_the_seal_of_another_text_or_none_at_all_is_no_seal() -> None:
    other = json.loads(sealed(TEXT + b" "))["seal"]
    assert not is_intact(TEXT.replace(UNSEALED.encode(), other.encode()), other)
    for seal in (UNSEALED, "", "x" * 64, None, 7, other.upper()):
        assert not is_intact(TEXT, seal)
