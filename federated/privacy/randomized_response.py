"""Two-level randomised response: a permanent answer per row, given once for ever, and a fresh one each round.

The permanent answer is PRF(secret, level, row) < p1 or p2, by whether the row was held when it was **first** asked for.
That first state is kept beside the secret: if the answer followed the data, a change of answer would say that the data
changed. A row is known by its name (federated/clients/row_names.py), not by its place, and the folder is the client's
for as long as it takes part in anything: another day's vocabulary asks for the same answers. What was answered is on
the disk before it leaves the client, and is read anew each time, for the next process may be another one. Answers
at two levels are drawn independently: what both say together costs the sum of their epsilons, which the ledger beside
them adds up.

    FOLDER/secret               32 bytes
    FOLDER/first.safetensors    names: uint64 [k], sorted; held: uint8 [k], when first asked
    FOLDER/ledger.json          federated/privacy/epsilon_ledger.py
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from pathlib import Path

import numpy as np
from safetensors import SafetensorError

from contracts.atomic_write import durable
from contracts.bundle.bundle import load_weights, save_weights
from contracts.errors import ProtocolError
from federated.privacy.epsilon_ledger import EpsilonLedger
from federated.privacy.index_policy import IndexPolicy
from federated.privacy.privacy_cost import any_rounds
from federated.secure_aggregation.mask_stream import KEY_BYTES, derive, pseudo_random

UNIFORM_BITS = 53  # as many as a float64 compares exactly
FIRST = "first.safetensors"


class FirstAnswers:
    """One client's permanent answers; `names` uint64 [rows] of the rows that places stand for today, or what makes them
    when an answer is given."""

    def __init__(self, folder: Path, names: np.ndarray | Callable[[], np.ndarray]) -> None:
        self.folder, self._names = folder, names
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.ledger = EpsilonLedger(folder / "ledger.json")
        self._secret = self._read_secret()
        self._read_first()

    def answers(self, asked: np.ndarray, held: np.ndarray, policy: IndexPolicy) -> np.ndarray:
        """bool per row of `asked`, places of today; `held` [rows] bool is the client's state today."""
        names = (self._names() if callable(self._names) else self._names)[asked]
        told = self._first_states(names, held[asked], policy)
        drawn = pseudo_random(derive(self._secret, b"permanent answers " + policy.name.encode()), names)
        return yes(drawn, told, policy.p1, policy.p2)

    def _first_states(self, names: np.ndarray, held: np.ndarray, policy: IndexPolicy) -> np.ndarray:
        known, states = self._read_first()
        new = ~np.isin(names, known)
        if new.any():
            known, first = np.unique(np.concatenate([known, names[new]]), return_index=True)
            states = np.concatenate([states, held[new]])[first]
            with durable(self.folder / FIRST) as draft:
                save_weights(draft, {"names": known, "held": states.astype(np.uint8)})
        self.ledger.note_answers(policy.name, any_rounds(policy), len(known))
        return states[np.searchsorted(known, names)]

    def _read_secret(self) -> bytes:
        path = self.folder / "secret"
        if not path.exists():
            with durable(path) as draft:
                draft.touch(mode=0o600)
                draft.write_bytes(secrets.token_bytes(KEY_BYTES))
        secret = path.read_bytes()
        if len(secret) != KEY_BYTES:
            raise ProtocolError(
                f"{path} has {len(secret)} bytes, not {KEY_BYTES}; restore it: a new one would answer anew"
            )
        return secret

    def _read_first(self) -> tuple[np.ndarray, np.ndarray]:
        path = self.folder / FIRST
        if not path.exists():
            return np.empty(0, dtype=np.uint64), np.empty(0, dtype=bool)
        try:
            stored = load_weights(path)
            return np.array(stored["names"]), np.array(stored["held"]).astype(bool)
        except (SafetensorError, KeyError) as error:
            raise ProtocolError(f"{path} cannot be read ({error}); restore it: a new one would answer anew") from None


def yes(drawn: np.ndarray, state: np.ndarray, if_true: float, if_false: float) -> np.ndarray:
    """bool per uniform 64-bit word: true with probability `if_true` or `if_false`; always at 1 and never at 0."""
    return (drawn >> (64 - UNIFORM_BITS)) < np.where(state, if_true, if_false) * 2.0**UNIFORM_BITS


def round_answers(permanent: np.ndarray, policy: IndexPolicy) -> np.ndarray:
    """This round's answers, from the operating system's randomness."""
    drawn = np.frombuffer(secrets.token_bytes(8 * len(permanent)), dtype=np.uint64)
    return yes(drawn, permanent, policy.p3, policy.p4)
