"""The Flower ClientApp: each phase of a round is a handler; what a client remembers of the round lies in its context.

The run's settings say where the prepared folder is (`folder`, unless the node's settings say it) and which setting is
trained (`setting`); the node's settings say which client it is (`partition-id`), whether it trains without masks, and
by which command it finds out whether it takes part in a round (`eligible`). A message that names a setting is about
counting (COUNTING), in any run.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from pathlib import Path

from flwr.app import Context, Error
from flwr.app import Message as FlowerMessage
from flwr.clientapp import ClientApp
from flwr.common.constant import ErrorCode

from contracts.errors import ProtocolError
from federated.clients import client_files
from federated.device.eligibility import by_command
from federated.device.own_client import OwnClients
from federated.flower.array_records import ARRAYS, from_records, to_records
from federated.flower.flower_exchange import QUERY, SETTING, message_type
from federated.flower.seats import SEAT, seat_reply
from federated.protocol.messages import PHASES, Phase
from federated.rounds.settings import COUNTING

Handler = Callable[[FlowerMessage, Context], FlowerMessage]

LOG = logging.getLogger(__name__)
MEMORY, UNMASKED, ELIGIBLE = "round", "unmasked", "eligible"
REFUSED = "refused; the reason is in the log of the node"


def _seat(message: FlowerMessage, context: Context) -> FlowerMessage:
    """Which client this node speaks for."""
    number = int(context.node_config["partition-id"])
    identity = client_files.read_identity(_folder(context), number)
    return FlowerMessage(to_records(seat_reply(from_records(message.content), identity)), reply_to=message)


def _folder(context: Context) -> Path:
    return Path(str(context.node_config.get("folder", context.run_config["folder"])))


def _guarded(handler: Handler, message: FlowerMessage, context: Context) -> FlowerMessage:
    """What went wrong is said in the client's own log: to the server it may tell of the data."""
    try:
        return handler(message, context)
    except Exception as error:
        LOG.warning("%s: %s: %s", message.metadata.message_type, type(error).__name__, error)
        return FlowerMessage(Error(ErrorCode.CLIENT_APP_RAISED_EXCEPTION, REFUSED), reply_to=message)


def _reply(clients: OwnClients, phase: Phase, message: FlowerMessage, context: Context) -> FlowerMessage:
    received, of_run = from_records(message.content), str(context.run_config["setting"])
    setting = received.pop(SETTING).tobytes().decode() if SETTING in received else of_run
    if setting not in (of_run, *COUNTING):
        raise ProtocolError(f"a message is about setting {setting!r}, the run about {of_run!r}; refused")
    remembered = MEMORY if setting == of_run else f"{MEMORY} {setting}"
    client = clients.of(_folder(context), setting, int(context.node_config["partition-id"]))
    if not client.plan.masked and not context.node_config.get(UNMASKED, False):
        raise ProtocolError(f"setting {setting!r} has no masks, and whoever starts a run names the setting; this node "
                            f"takes part in it with --node-config '{UNMASKED}=true' alone; refused")
    memory = from_records(context.state, remembered) if remembered in context.state else {}
    eligible = by_command(str(context.node_config.get(ELIGIBLE, "")))
    reply, memory = client.handle(phase, received, memory, eligible)
    context.state[remembered] = to_records(memory)[ARRAYS]
    return FlowerMessage(to_records(reply), reply_to=message)


def app_of(clients: OwnClients) -> ClientApp:
    """Whatever node it runs on: the clients that a run plays in one process."""
    made = ClientApp()
    for phase in PHASES:
        register = made.query if message_type(phase).startswith(QUERY) else made.train
        register(phase)(partial(_guarded, partial(_reply, clients, phase)))
    made.query(SEAT)(partial(_guarded, _seat))
    return made


app = app_of(OwnClients())
