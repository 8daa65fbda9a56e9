"""What the server of a simulated run sees, round by round, against what its clients really hold."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from contracts.summaries.federated import LeakCurve
from federated.clients import client_files
from federated.privacy.leak_curve import LeakWatch
from federated.protocol.round_server import OpenedRound
from federated.rounds.public_setup import PublicSetup


class RoundWatch:
    """Called with each opened round of a setting; all clients' rows lie in `folder`."""

    def __init__(self, setup: PublicSetup, folder: Path, rounds: int) -> None:
        self._private, self._noise = setup.plan.private_places, setup.plan.noise
        batches = (client_files.read_client(folder, number) for number in range(client_files.count(folder)))
        held = [np.isin(self._private, setup.space.held(batch), assume_unique=True) for batch in batches]
        self._watch = LeakWatch(np.stack(held), rounds)

    def __call__(self, opened: OpenedRound) -> None:
        counted = None if self._noise else self._rows(np.flatnonzero(opened.row_weights))
        named = {client: self._rows(opened.places[client]) for client in opened.finished}
        self._watch.observe(opened.in_union, self._rows(opened.union), named, counted)

    def curve(self) -> LeakCurve:
        """What the rounds so far prove."""
        return self._watch.curve()

    def _rows(self, places: np.ndarray) -> np.ndarray:
        return np.searchsorted(self._private, np.intersect1d(places, self._private, assume_unique=True))
