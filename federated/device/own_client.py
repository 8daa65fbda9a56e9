"""A client of a prepared folder, made of its own files and the public ones."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from contracts.errors import ProtocolError
from federated.clients import client_files
from federated.clients.local_training import ClientTrainer
from federated.privacy.randomized_response import FirstAnswers
from federated.protocol.gradient_store import GradientStore
from federated.protocol.round_client import RoundClient, Trainer
from federated.rounds.personal_scores import PersonalTrainer
from federated.rounds.public_setup import PublicSetup, public_setup
from federated.rounds.score_histograms import HistogramTrainer
from federated.rounds.settings import COUNTING, HISTOGRAMS, PERSONAL, local_settings

SETTINGS, CLIENTS = 16, 4096  # that one process keeps


def client_of(setup: PublicSetup, folder: Path, number: int) -> RoundClient:
    """The client of a number in the prepared folder that the setup was read from."""
    plan, config, setting = setup.plan, setup.config, setup.setting
    identity = client_files.read_identity(folder, number) if plan.identities else None
    if setting in COUNTING:
        return RoundClient(plan, _counting(setup, folder, number), None, identity=identity)
    own = client_files.read_client(folder, number)
    answers = FirstAnswers(client_files.memory(folder, number) / "answers", lambda: setup.names)
    memory = client_files.client(folder, number) / f"gradient-{setting}.safetensors"
    gradients = GradientStore(memory, plan.dense, plan.width) if plan.rule == "latest" else None
    trainer_of = ClientTrainer(setup.space, config, local_settings(setting, config), own, number)
    return RoundClient(plan, trainer_of, answers, gradients, identity)


def _counting(setup: PublicSetup, folder: Path, number: int) -> Trainer:
    """Raises ProtocolError where heads are asked for and the configuration that the client holds has none."""
    later = client_files.read_client(folder, number, client_files.LATER)
    if setup.setting != PERSONAL:
        return HistogramTrainer(setup.networks, setup.space.spec, later, setup.setting == HISTOGRAMS)
    if not setup.config.federated.personal_steps:
        raise ProtocolError("personal heads are asked for and federated.personal_steps is 0 in the configuration that "
                            "this client holds; refused")
    own = client_files.read_client(folder, number)
    return PersonalTrainer(setup.networks, setup.config, own, later, folder, number)


class OwnClients:
    """Clients that one process plays, each read once: while this lives it does not look at their files again. A copy
    that goes to another process becomes that one's own; all copies that come there are one."""

    def __init__(self, name: str = "") -> None:
        self._name = name or uuid.uuid4().hex
        self._setup = lru_cache(maxsize=SETTINGS)(public_setup)
        self.of = lru_cache(maxsize=CLIENTS)(self._of)

    def __reduce__(self) -> tuple[Callable[[str], OwnClients], tuple[str]]:
        return _of_this_process, (self._name,)

    def _of(self, folder: Path, setting: str, number: int) -> RoundClient:
        return client_of(self._setup(folder, setting), folder, number)


@lru_cache(maxsize=1)
def _of_this_process(name: str) -> OwnClients:
    return OwnClients(name)
