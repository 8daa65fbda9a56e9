"""A ClientApp over clients made in advance, whose memory lies in Flower's context."""

from __future__ import annotations

from flwr.app import Message
from flwr.clientapp import ClientApp

from federated.flower.array_records import from_records, to_records
from federated.protocol.messages import PHASES


def app_of(made):
    """A ClientApp over clients made in advance, whose memory lies in Flower's context."""
    app = ClientApp()

    def handler(phase):
        def handle(message, context):
            client = made[context.node_config["partition-id"] + 100]
            memory = from_records(context.state, "round") if "round" in context.state else {}
            reply, memory = client.handle(phase, from_records(message.content), memory)
            context.state["round"] = to_records(memory)["arrays"]
            return Message(to_records(reply), reply_to=message)

        return handle

    for phase in PHASES:
        (app.train if phase == "train" else app.query)(phase)(handler(phase))
    return app
