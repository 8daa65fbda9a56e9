"""What server and clients send each other: named numpy arrays, and the names of the phases.

    keys ▶ shares ▶ union ▶ agree_union ▶ open_union ▶ choose ▶ train ▶ agree_update ▶ open_update

Without masks there is nothing to share, to agree on and to open; where every row is in scope there is no union and no
choice.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Protocol, get_args

import numpy as np

from contracts.errors import ProtocolError

Message = dict[str, np.ndarray]
Phase = Literal[
    "keys", "shares", "union", "agree_union", "open_union", "choose", "train", "agree_update", "open_update"
]
PHASES: tuple[Phase, ...] = get_args(Phase)
ROUND = "round"
ACCEPTED, MEAN_SAMPLES = "accepted", "mean_samples"  # beside the model where the averaging is "latest"


class Exchange(Protocol):
    """Sends each client its message and answers the replies that came in time."""

    def __call__(self, phase: Phase, messages: Mapping[int, Message]) -> Mapping[int, Message]: ...


def text(value: bytes) -> np.ndarray:
    return np.frombuffer(value, dtype=np.uint8)


def numbers(values: object) -> np.ndarray:
    return np.asarray(values, dtype=np.int32)


def scalar(value: int, dtype: type) -> np.ndarray:
    return np.array(value, dtype=dtype)


def get(message: Message, name: str, dtype: type, shape: tuple[int | None, ...]) -> np.ndarray:
    """One array of a message. Raises ProtocolError when it is missing, or of another type or shape (None: any)."""
    found = message.get(name)
    if found is None:
        raise ProtocolError(f"a message has no {name!r}; it has {sorted(message)}")
    fits = len(found.shape) == len(shape) and all(
        want in (None, have) for want, have in zip(shape, found.shape, strict=True)
    )
    if found.dtype != np.dtype(dtype) or not fits:
        raise ProtocolError(f"{name!r} of a message is {found.dtype} {found.shape}, expected {np.dtype(dtype)} {shape}")
    return found
