"""Arrays of a message are of the type and shape that the phase needs, or refused."""

from __future__ import annotations

import numpy as np
import pytest

from contracts.errors import ProtocolError
from federated.protocol.messages import PHASES, MadeWhenSent, get, numbers, scalar, text

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
    assert made == []
    assert next(iter(messages.items())) == (4, {"me": np.array(4)})
    assert made == [4]
    with pytest.raises(KeyError):
        messages[3]
