"""A client on a device of its own: its rows, answers, keys and what it remembers of a round lie in its folder, and it
replies to the protocol's messages, over whatever channel brings them.

    FOLDER/clients/N/round-SETTING.safetensors    what it remembers of the round (federated/protocol/round_client.py)

Needs torch, numpy, pyarrow, pydantic, safetensors, cryptography and pycryptodome (`pip install '.[device]'`):
no Spark, no Flower, no torch-geometric.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from safetensors.numpy import load, save

from contracts.atomic_write import durable
from contracts.errors import ProtocolError
from federated.clients import client_files
from federated.device.eligibility import always
from federated.device.own_client import client_of
from federated.protocol.messages import RUN, Message, Phase
from federated.protocol.round_client import Eligible
from federated.rounds.public_setup import public_setup


class Device:
    """Client `number` of a prepared folder, for one setting. `unmasked`: whether it trains where the setting has no
    masks; `eligible`: whether it takes part in a round that begins now."""

    def __init__(
        self, folder: Path, setting: str, number: int, unmasked: bool = False, eligible: Eligible = always
    ) -> None:
        self._eligible = eligible
        self._client = client_of(public_setup(folder, setting), folder, number)
        self._memory = client_files.client(folder, number) / f"round-{setting}.safetensors"
        if not self._client.plan.masked and not unmasked:
            raise ProtocolError(f"setting {setting!r} has no masks, so that the server would see this client's update; "
                                "refused")

    def handle(self, phase: Phase, message: Message) -> Message:
        """The reply; what the client remembers is on the disk before it leaves. Raises ProtocolError on a refusal."""
        remembered = self._of_its_run(phase, message)
        reply, memory = self._client.handle(phase, message, remembered, self._eligible)
        with durable(self._memory) as draft:
            draft.write_bytes(save({name: np.asarray(value, order="C") for name, value in memory.items()}))
        return reply

    def _of_its_run(self, phase: Phase, message: Message) -> Message:
        """Rounds are numbered anew by another run, and by another start of it: what is remembered of one says nothing
        of the other's."""
        remembered = self._remembered()
        known = phase == "keys" and RUN in message and RUN in remembered
        return {} if known and not np.array_equal(message[RUN], remembered[RUN]) else remembered

    def _remembered(self) -> Message:
        if not self._memory.exists():
            return {}
        return dict(load(self._memory.read_bytes()))
