"""Bytes on the wire against payloads that are counted by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from contracts.errors import ProtocolError
from contracts.summaries.federated import BothWays
from federated.rounds.byte_count import FRAMING, MESSAGE_FRAMING, ByteCount, both_ways, mean_of_rounds, predicted

MESSAGE: dict[str, np.ndarray] = {"a": np.zeros(10, np.float32), "b": np.zeros(3, np.uint8)}  # 43 bytes of payload
PAPER: dict[str, Any] = {
    "code": 300, "private": 300, "union": 80, "rows": 50.0, "dense": 7, "width": 4, "neighbours": 6, "clients": 16}


def test_means_are_over_the_messages_of_a_phase_and_the_count_starts_anew():
    counted = ByteCount()
    counted.add("keys", "down", MESSAGE, 100)
    counted.add("keys", "down", MESSAGE, 200)
    counted.add("keys", "up", MESSAGE, 400)
    assert counted.per_client_round() == 150.0 + 400.0
    assert counted.take() == {"keys": BothWays(up=400.0, down=150.0)}
    assert counted.take() == {}


@pytest.mark.parametrize("wire", [43, 43 + 2 * FRAMING + MESSAGE_FRAMING + 1])
def test_a_message_shorter_than_its_payload_or_longer_than_its_framing_is_noticed(wire):
    with pytest.raises(ProtocolError, match="payload of 43"):
        ByteCount().add("train", "up", MESSAGE, wire)


def test_a_phase_is_averaged_over_the_rounds_that_had_it():
    choose = BothWays(up=7.0, down=9.0)
    mean = mean_of_rounds([
        {"keys": BothWays(up=1.0, down=3.0)}, {"keys": BothWays(up=2.0, down=5.0), "choose": choose}])
    assert mean == {"keys": BothWays(up=1.5, down=4.0), "choose": choose}
    assert both_ways(mean) == 21.5
    assert mean_of_rounds([]) == {}


def test_the_formulas_by_hand():
    per_phase = predicted(**PAPER, per_row=True)
    assert per_phase["keys"] == (204, 36)
    assert per_phase["shares"] == (92 * 6, 208 * 6 + 20 * 16 + 4)
    assert per_phase["union"] == (4 * 300, 96 * 6)
    assert per_phase["agree_union"] == per_phase["agree_update"] == (64, 2)
    assert per_phase["open_union"] == per_phase["open_update"] == (16 * 6, 68 * 11)  # 11 are more than two thirds of 16
    assert per_phase["choose"] == (10, 38)
    assert per_phase["train"] == (4 * (7 + 4 + 50 * 5), 4 * (7 + 50 * 4) + 4 * 6 + 6 * 7)


def test_without_masks_or_a_choice_phases_are_missing_and_boxes_come_with_the_first_upload():
    assert predicted(**PAPER, per_row=False, masked=False, choose=False).keys() == {"train"}
    public = predicted(**PAPER, per_row=False, choose=False)
    assert public.keys() == {"keys", "shares", "train", "agree_update", "open_update"}
    with_union = predicted(**PAPER, per_row=False)
    assert public["train"][1] - with_union["train"][1] == 96 * 6
