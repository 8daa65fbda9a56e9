"""A client of a prepared folder, made of its own files and the public ones."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from federated.clients import client_files
from federated.clients.local_training import ClientTrainer
from federated.privacy.randomized_response import FirstAnswers
from federated.protocol.gradient_store import GradientStore
from federated.protocol.round_client import RoundClient
from federated.rounds.public_setup import PublicSetup, public_setup
from federated.rounds.score_histograms import HistogramTrainer
from federated.rounds.settings import HISTOGRAMS, local_settings

CACHED = 4096  # one process may play them all


@lru_cache(maxsize=16)
def _setup(folder: Path, setting: str) -> PublicSetup:
    return public_setup(folder, setting)


@lru_cache(maxsize=CACHED)
def client_of(folder: Path, setting: str, number: int) -> RoundClient:
    """The client of a number in a prepared folder, for a setting or for the last round (HISTOGRAMS)."""
    setup = _setup(folder, setting)
    plan, config = setup.plan, setup.config
    identity = client_files.read_identity(folder, number) if plan.identities else None
    if setting == HISTOGRAMS:
        later = client_files.read_client(folder, number, client_files.LATER)
        return RoundClient(plan, HistogramTrainer(setup.networks, setup.space.spec, later), None, identity=identity)
    trainer = ClientTrainer(
        setup.space, config, local_settings(setting, config), client_files.read_client(folder, number), number)
    answers = FirstAnswers(client_files.memory(folder, number) / "answers", setup.names)
    memory = client_files.client(folder, number) / f"gradient-{setting}.safetensors"
    gradients = GradientStore(memory, plan.dense, plan.width) if plan.rule == "latest" else None
    return RoundClient(plan, trainer, answers, gradients, identity)
