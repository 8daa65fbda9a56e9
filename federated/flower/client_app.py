"""The Flower ClientApp: each phase of a round is a handler; what a client remembers of the round lies in its context.

The run's settings say where the prepared folder is (`folder`, unless the node's settings say it) and which setting is
trained (`setting`); the node's settings say which client it is (`partition-id`) and whether it trains without masks. A
message names the setting too, so that one grid can run several.
"""

from __future__ import annotations

from functools import lru_cache, partial
from pathlib import Path

import torch
from flwr.app import Context
from flwr.app import Message as FlowerMessage
from flwr.clientapp import ClientApp

from contracts.errors import ProtocolError
from federated.clients import client_files
from federated.clients.local_training import ClientTrainer
from federated.clients.networks import FederatedNetworks
from federated.clients.row_space import RowSpace
from federated.flower.flower_exchange import QUERY, message_type
from federated.flower.flower_records import ARRAYS, from_records, to_records
from federated.privacy.randomized_response import FirstAnswers
from federated.protocol.gradient_store import GradientStore
from federated.protocol.messages import PHASES, Phase
from federated.protocol.plan import Plan
from federated.protocol.round_client import RoundClient
from federated.rounds.score_histograms import HistogramTrainer, histogram_plan
from federated.rounds.settings import HISTOGRAMS, local_settings, plan_of
from federated.secure_aggregation.identity import Identity

MEMORY, UNMASKED = "round", "unmasked"
CACHED = 4096


@lru_cache(maxsize=16)
def _agreed(folder: Path, setting: str) -> tuple[RowSpace, Plan]:
    config, spec = client_files.read_public(folder)
    space = RowSpace(spec, config.federated.public_up_to)
    torch.manual_seed(config.seed)
    return space, plan_of(setting, config, space, FederatedNetworks(spec, config), client_files.identities(folder))


@lru_cache(maxsize=CACHED)
def client_of(folder: Path, setting: str, number: int) -> RoundClient:
    if setting == HISTOGRAMS:
        return _counting_client(folder, number)
    config, _ = client_files.read_public(folder)
    space, plan = _agreed(folder, setting)
    batch = client_files.read_client(folder, number)
    trainer = ClientTrainer(space, config, local_settings(setting, config), batch, number)
    answers = FirstAnswers(client_files.client(folder, number) / "answers", len(plan.private_places))
    memory = client_files.client(folder, number) / f"gradient-{setting}.safetensors"
    gradients = GradientStore(memory, plan.dense, plan.width) if plan.rule == "latest" else None
    return RoundClient(plan, trainer, answers, gradients, _identity(folder, plan, number))


def _counting_client(folder: Path, number: int) -> RoundClient:
    config, spec = client_files.read_public(folder)
    networks = FederatedNetworks(spec, config)
    plan = histogram_plan(config, spec, networks, client_files.count(folder), client_files.identities(folder))
    later = client_files.read_client(folder, number, client_files.LATER)
    return RoundClient(plan, HistogramTrainer(networks, spec, later), None, identity=_identity(folder, plan, number))


def _identity(folder: Path, plan: Plan, number: int) -> Identity | None:
    return client_files.read_identity(folder, number) if plan.identities else None


def _handle(phase: Phase, message: FlowerMessage, context: Context) -> FlowerMessage:
    folder = Path(str(context.node_config.get("folder", context.run_config["folder"])))
    setting = str(context.run_config["setting"])
    client = client_of(folder, setting, int(context.node_config["partition-id"]))
    if not client.plan.masked and not context.node_config.get(UNMASKED, False):
        raise ProtocolError(f"setting {setting!r} has no masks, and whoever starts a run names the setting; this node "
                            f"answers it with --node-config '{UNMASKED}=true' alone; refused")
    memory = from_records(context.state, MEMORY) if MEMORY in context.state else {}
    reply, memory = client.handle(phase, from_records(message.content), memory)
    context.state[MEMORY] = to_records(memory).array_records[ARRAYS]
    return FlowerMessage(to_records(reply), reply_to=message)


def _app() -> ClientApp:
    made = ClientApp()
    for phase in PHASES:
        register = made.query if message_type(phase).startswith(QUERY) else made.train
        register(phase)(partial(_handle, phase))
    return made


app = _app()
