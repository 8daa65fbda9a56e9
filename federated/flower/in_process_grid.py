"""A Flower grid whose nodes live in this process: every message is serialised and read again, nothing else is shared.

For runs of many clients on one machine, and for tests: `lose(phase, node)` says which messages get no reply.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import count

from flwr.app import Context, Error, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.common.serde import message_from_proto, message_to_proto
from flwr.proto.message_pb2 import Message as ProtoMessage
from flwr.serverapp import Grid
from flwr.supercore.run import Run
from flwr.supercore.task_identity import TaskIdentity

Lose = Callable[[str, int], bool]
CLIENT_FAILED = 0
SERVER, RUN = 1, 1


class InProcessGrid(Grid):
    """`nodes`: node id -> its partition. `run_config` is what every client reads as the run's settings."""

    def __init__(
        self, app: ClientApp, nodes: dict[int, int], run_config: dict[str, str | int | float | bool],
        lose: Lose = lambda phase, node: False, node_config: dict[str, str | int | float | bool] | None = None,
    ) -> None:
        TaskIdentity.run_id, TaskIdentity.node_id, TaskIdentity.task_id = RUN, SERVER, 1
        self.app, self.lose = app, lose
        self.contexts = {
            node: Context(RUN, node, {"partition-id": partition, **(node_config or {})}, RecordDict(), run_config)
            for node, partition in nodes.items()
        }
        self._numbers = count(1)
        self._replies: dict[str, Message] = {}

    def set_run(self, run: Run) -> None:
        raise NotImplementedError("a grid in this process has one run")

    @property
    def run(self) -> Run:
        return Run.create_empty(RUN)

    def create_message(
        self, content: RecordDict, message_type: str, dst_node_id: int, group_id: str, ttl: float | None = None
    ) -> Message:
        return Message(content, dst_node_id, message_type, ttl=ttl, group_id=group_id)

    def get_node_ids(self) -> Iterable[int]:
        return list(self.contexts)

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        identifiers = []
        for message in messages:
            identifier = f"m{next(self._numbers)}"
            identifiers.append(identifier)
            phase = message.metadata.message_type.split(".")[-1]
            if not self.lose(phase, message.metadata.dst_node_id):
                received = copied(message)
                received.metadata.__dict__["_message_id"] = identifier  # as a SuperLink gives them
                self._replies[identifier] = self._reply_of(received)
        return identifiers

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        return [self._replies.pop(identifier) for identifier in message_ids if identifier in self._replies]

    def send_and_receive(self, messages: Iterable[Message], *, timeout: float | None = None) -> Iterable[Message]:
        return self.pull_messages(self.push_messages(messages))

    def _reply_of(self, message: Message) -> Message:
        try:
            return copied(self.app(message, self.contexts[message.metadata.dst_node_id]))
        except Exception as error:  # what a SuperNode does with a client's exception, whatever it is
            return Message(Error(CLIENT_FAILED, str(error)), reply_to=message)


def copied(message: Message) -> Message:
    """Through its serialised form."""
    return message_from_proto(ProtoMessage.FromString(message_to_proto(message).SerializeToString()))
