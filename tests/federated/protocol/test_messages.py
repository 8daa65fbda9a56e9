"""Arrays of a message are of the type and shape that the phase needs, or refused."""

from __future__ import annotations

import numpy as np
import pytest

from contracts.errors import ProtocolError
from federated.protocol.messages import PHASES, MadeWhenSent, get, joined, numbers, parted_phases, scalar, text

MESSAGE = {"words": np.zeros((3, 2), np.uint32)}


def test_an_array_of_the_right_type_and_shape_is_returned():
    assert get(MESSAGE, "words", np.uint32, (3, 2)) is MESSAGE["words"]
    assert get(MESSAGE, "words", np.uint32, (None, 2)) is MESSAGE["words"]


@pytest.mark.parametrize(("dtype", "shape"), [
    (np.int32, (3, 2)), (np.uint32, (3, 3)), (np.uint32, (None,)), (np.uint32, (3, 2, None))])
def test_another_type_or_shape_is_refused(dtype, shape):
    with pytest.raises(ProtocolError, match="'words' of a message is uint32"):
        get(MESSAGE, "words", dtype, shape)


def test_a_missing_array_is_refused_with_what_there_is():
    with pytest.raises(ProtocolError, match=r"no 'rows'; it has \['words'\]"):
        get(MESSAGE, "rows", np.uint32, (None,))


def test_values_come_back_as_they_were_sent():
    assert text(b"abc").tobytes() == b"abc"
    assert numbers([3, 1]).tolist() == [3, 1]
    assert scalar(7, np.int64)[()] == 7
    assert scalar(7, np.int64).shape == ()


def test_every_phase_comes_once():
    assert len(set(PHASES)) == len(PHASES)


def test_messages_are_made_when_they_are_looked_up_and_for_those_alone_who_are_asked():
    made = list[int]()

    def make(client):
        made.append(client)
        return {"me": np.array(client)}

    messages = MadeWhenSent([4, 2, 9], make)
    assert list(messages) == [4, 2, 9]
    assert len(messages) == 3
    assert 2 in messages
    assert 3 not in messages
    assert made == []
    assert next(iter(messages.items())) == (4, {"me": np.array(4)})
    assert made == [4]
    with pytest.raises(KeyError):
        messages[3]


ONE, OTHER = {"round": np.array(5), "rows": np.zeros(2)}, {"round": np.array(10), "roster": np.ones(3)}


@pytest.mark.parametrize("parts", [{"train": ONE}, {"train": ONE, "shares": OTHER}, {"shares": OTHER}])
def test_what_is_joined_is_parted(parts):
    message = joined("train", parts)
    found = parted_phases("train", message)
    assert list(found) == list(parts)
    assert all(found[phase] is not parts[phase] and found[phase].keys() == parts[phase].keys() for phase in parts)
    assert all(found[phase][name] is parts[phase][name] for phase in parts for name in parts[phase])


def test_a_phases_own_message_is_as_it_always_was():
    assert joined("train", {"train": ONE}) == ONE


def test_names_that_are_of_no_phase_belong_to_the_messages_own():
    odd = {"odd words": ONE["rows"], "keys": ONE["rows"]}
    assert parted_phases("train", odd) == {"train": odd}
    assert parted_phases("train", {}) == {}


def test_more_than_two_are_refused():
    message = joined("train", {"train": ONE, "shares": OTHER, "keys": OTHER})
    with pytest.raises(ProtocolError, match="2 are the most"):
        parted_phases("train", message)
