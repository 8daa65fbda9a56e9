"""The Flower ClientApp: each phase of a round is a handler; what a client remembers of the round lies in its context.

The run's settings say where the prepared folder is (`folder`, unless the node's settings say it) and which setting is
trained (`setting`); the node's settings say which client it is (`partition-id`) and whether it trains without masks. A
message that names a setting is about counting scores (HISTOGRAMS), in any run.
"""

from __future__ import annotations

import logging
from functools import lru_cache, partial
from pathlib import Path

from flwr.app import Context, Error
from flwr.app import Message as FlowerMessage
from flwr.clientapp import ClientApp
from flwr.common.constant import ErrorCode

from contracts.errors import ProtocolError
from federated.clients import client_files
from federated.clients.local_training import ClientTrainer
from federated.flower.array_records import ARRAYS, from_records, to_records
from federated.flower.flower_exchange import QUERY, SETTING, message_type
from federated.privacy.randomized_response import FirstAnswers
from federated.protocol.gradient_store import GradientStore
from federated.protocol.messages import PHASES, Phase
from federated.protocol.round_client import RoundClient
from federated.rounds.public_setup import PublicSetup, public_setup
from federated.rounds.score_histograms import HistogramTrainer
from federated.rounds.settings import HISTOGRAMS, local_settings

LOG = logging.getLogger(__name__)
MEMORY, UNMASKED = "round", "unmasked"
REFUSED = "refused; the reason is in the log of the node"
CACHED = 4096


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


def _handle(phase: Phase, message: FlowerMessage, context: Context) -> FlowerMessage:
    """What went wrong is said in the client's own log: to the server it may tell of the data."""
    try:
        return _reply(phase, message, context)
    except Exception as error:
        LOG.warning("%s: %s: %s", phase, type(error).__name__, error)
        return FlowerMessage(Error(ErrorCode.CLIENT_APP_RAISED_EXCEPTION, REFUSED), reply_to=message)


def _reply(phase: Phase, message: FlowerMessage, context: Context) -> FlowerMessage:
    folder = Path(str(context.node_config.get("folder", context.run_config["folder"])))
    received, of_run = from_records(message.content), str(context.run_config["setting"])
    setting = received.pop(SETTING).tobytes().decode() if SETTING in received else of_run
    if setting not in (of_run, HISTOGRAMS):
        raise ProtocolError(f"a message is about setting {setting!r}, the run about {of_run!r}; refused")
    remembered = MEMORY if setting == of_run else f"{MEMORY} {setting}"
    client = client_of(folder, setting, int(context.node_config["partition-id"]))
    if not client.plan.masked and not context.node_config.get(UNMASKED, False):
        raise ProtocolError(f"setting {setting!r} has no masks, and whoever starts a run names the setting; this node "
                            f"takes part in it with --node-config '{UNMASKED}=true' alone; refused")
    memory = from_records(context.state, remembered) if remembered in context.state else {}
    reply, memory = client.handle(phase, received, memory)
    context.state[remembered] = to_records(memory).array_records[ARRAYS]
    return FlowerMessage(to_records(reply), reply_to=message)


def _app() -> ClientApp:
    made = ClientApp()
    for phase in PHASES:
        register = made.query if message_type(phase).startswith(QUERY) else made.train
        register(phase)(partial(_handle, phase))
    return made


app = _app()
