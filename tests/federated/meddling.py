"""Clients and servers that change what they send."""

from __future__ import annotations

from federated.protocol.messages import text
from tests.federated.local_exchange import LocalExchange


class Meddling(LocalExchange):
    """Changes one client's reply of one phase."""

    def __init__(self, made, phase, client, change):
        super().__init__(made)
        self.phase, self.client, self.change = phase, client, change

    def replies(self, phase, messages):
        replies = super().replies(phase, messages)
        if phase == self.phase and self.client in replies:
            changed = self.change(dict(replies[self.client]))
            replies = {**replies, self.client: changed}
        return replies


class Lying(LocalExchange):
    """A server that changes what it tells clients in one phase."""

    def __init__(self, made, phase, change):
        super().__init__(made)
        self.phase, self.change = phase, change

    def replies(self, phase, messages):
        if phase == self.phase:
            messages = {client: self.change(dict(message)) for client, message in messages.items()}
        return super().replies(phase, messages)


def with_first(rows, first):
    changed = rows.copy()
    changed[0] = text(first)
    return changed
