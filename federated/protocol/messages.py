"""What server and clients send each other: named numpy arrays, and the names of the phases.

    keys ▶ shares ▶ union ▶ agree_union ▶ open_union ▶ choose ▶ train ▶ agree_update ▶ open_update

Without masks there is nothing to share, to agree on and to open; where every row is in scope there is no union and no
choice. Where rounds overlap, a message has two phases: what a client is asked in the round that it trains in, and in
the one that is prepared. The arrays of the message's own phase have their plain names, those of the phase beside it
have its name before theirs:

    {"round": .., "rows": .., "dense": .., "shares round": .., "shares roster": ..}      train, and shares beside it

Replies are put together the same way. A message may hold the phase beside alone: of a client that has no part in the
other round, or is lost in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Literal, Protocol, get_args

import numpy as np

from contracts.errors import ProtocolError

Message = dict[str, np.ndarray]
Phase = Literal[
    "keys", "shares", "union", "agree_union", "open_union", "choose", "train", "agree_update", "open_update"
]
PHASES: tuple[Phase, ...] = get_args(Phase)
OF_NAME: Mapping[str, Phase] = {phase: phase for phase in PHASES}
MOST_PHASES = 2  # of a message
ROUND = "round"
RUN, RUN_BYTES = "run", 32  # with the keys: 16 bytes of the run, as long as its model lives, 16 of this start of it
ACCEPTED, MEAN_SAMPLES, VOIDED = "accepted", "mean_samples", "voided"  # with the model where averaging is "latest"


class Exchange(Protocol):
    """Sends each client its message, looked up when it is sent, and yields (client, reply), one of each at most, as
    they come, in whatever order, until the last or the time limit."""

    def __call__(self, phase: Phase, messages: Mapping[int, Message]) -> Iterable[tuple[int, Message]]: ...


class MadeWhenSent(Mapping[int, Message]):
    """What `make` makes for each client, when it is looked up and not before: messages of a phase are never all there,
    and the first are on their way while the others are made."""

    def __init__(self, clients: Iterable[int], make: Callable[[int], Message]) -> None:
        self._clients, self._make = dict.fromkeys(clients), make

    def __getitem__(self, client: int) -> Message:
        if client not in self._clients:
            raise KeyError(client)
        return self._make(client)

    def __contains__(self, client: object) -> bool:
        """Nothing is made for it: Mapping's own looks the message up, and takes a KeyError of `make` for a no."""
        return client in self._clients

    def __iter__(self) -> Iterator[int]:
        return iter(self._clients)

    def __len__(self) -> int:
        return len(self._clients)


def text(value: bytes) -> np.ndarray:
    """uint8 [n]."""
    return np.frombuffer(value, dtype=np.uint8)


def numbers(values: object) -> np.ndarray:
    """int32, of the same shape."""
    return np.asarray(values, dtype=np.int32)


def scalar(value: int, dtype: type) -> np.ndarray:
    """An array without axes."""
    return np.array(value, dtype=dtype)


def get(message: Message, name: str, dtype: type, shape: tuple[int | None, ...]) -> np.ndarray:
    """One array of a message. Raises ProtocolError when it is missing, or of another type or shape (None: any)."""
    array = message.get(name)
    if array is None:
        raise ProtocolError(f"a message has no {name!r}; it has {sorted(message)}")
    fits = len(array.shape) == len(shape) and all(
        want in (None, have) for want, have in zip(shape, array.shape, strict=True)
    )
    if array.dtype != np.dtype(dtype) or not fits:
        raise ProtocolError(f"{name!r} of a message is {array.dtype} {array.shape}, expected {np.dtype(dtype)} {shape}")
    return array


def joined(own: Phase, parts: Mapping[Phase, Message]) -> Message:
    """One message of a phase `own`; `parts`: phase -> its message."""
    return {name if phase == own else f"{phase} {name}": array
            for phase, part in parts.items() for name, array in part.items()}


def parted_phases(own: Phase, message: Message) -> dict[Phase, Message]:
    """The inverse: phases that have an array, the message's own first. Raises ProtocolError where they are more than
    MOST_PHASES."""
    parts: dict[Phase, Message] = {own: {}}
    for full, array in message.items():
        before, _, name = full.partition(" ")
        phase = OF_NAME.get(before) if name else None
        parts.setdefault(phase or own, {})[name if phase else full] = array
    found = {phase: part for phase, part in parts.items() if part}
    if len(found) > MOST_PHASES:
        raise ProtocolError(f"a message is about the phases {sorted(found)}, {MOST_PHASES} are the most; refused")
    return found
