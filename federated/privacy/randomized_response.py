"""Two-level randomised response: a permanent answer per row, given once for ever, and a fresh one each round.

The permanent answer is PRF(secret, level, row) < p1 or p2, by whether the row was held when it was **first** asked for.
That first state is kept in a file beside the secret: if the answer followed the data, a change of answer would say that
the data changed. Both files are replaced by rename before an answer leaves the client, so a crash cannot make it
forget; they are read anew each time, for the next process of the client may be another one. Answers at two levels are
drawn independently: what both say together costs the sum of their epsilons.

    FOLDER/secret      32 bytes
    FOLDER/first.npy   uint8 [2, ceil(rows / 8)]: asked, and held when asked
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

import numpy as np

from contracts.atomic_write import aside
from contracts.errors import ProtocolError
from federated.privacy.index_policy import IndexPolicy
from federated.secure_aggregation.mask_stream import KEY_BYTES, derive, words

UNIFORM_BITS = 53  # as many as a float64 compares exactly


class FirstAnswers:
    """One client's permanent answers over a space of `rows`."""

    def __init__(self, folder: Path, rows: int) -> None:
        self.folder, self.rows = folder, rows
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._secret = self._read_secret()
        self._read_first()

    def answers(self, asked: np.ndarray, held: np.ndarray, policy: IndexPolicy) -> np.ndarray:
        """bool per row of `asked`; `held` [rows] bool is the client's state today."""
        known, told = self._read_first()
        new = asked[~known[asked]]
        if len(new):
            known[new], told[new] = True, held[new]
            _replace(self.folder / "first.npy", np.packbits(np.stack([known, told]), axis=1).tobytes())
        drawn = words(derive(self._secret, b"permanent answers " + policy.name.encode()), self.rows, np.uint64)[asked]
        return yes(drawn, told[asked], policy.p1, policy.p2)

    def _read_secret(self) -> bytes:
        path = self.folder / "secret"
        if not path.exists():
            _replace(path, secrets.token_bytes(KEY_BYTES))
        secret = path.read_bytes()
        if len(secret) != KEY_BYTES:
            raise ProtocolError(
                f"{path} has {len(secret)} bytes, not {KEY_BYTES}; restore it: a new one would answer anew"
            )
        return secret

    def _read_first(self) -> tuple[np.ndarray, np.ndarray]:
        path = self.folder / "first.npy"
        if not path.exists():
            return np.zeros(self.rows, dtype=bool), np.zeros(self.rows, dtype=bool)
        packed = np.frombuffer(path.read_bytes(), dtype=np.uint8).reshape(2, -1)
        if packed.shape[1] != -(-self.rows // 8):
            raise ProtocolError(f"{path} is about {packed.shape[1] * 8} rows, the model has {self.rows}")
        first = np.unpackbits(packed, axis=1, count=self.rows).astype(bool)
        return first[0], first[1]


def yes(drawn: np.ndarray, state: np.ndarray, if_true: float, if_false: float) -> np.ndarray:
    """bool per uniform 64-bit word: true with probability `if_true` or `if_false`; always at 1 and never at 0."""
    return (drawn >> (64 - UNIFORM_BITS)) < np.where(state, if_true, if_false) * 2.0**UNIFORM_BITS


def round_answers(permanent: np.ndarray, policy: IndexPolicy) -> np.ndarray:
    """This round's answers, from the operating system's randomness."""
    drawn = np.frombuffer(secrets.token_bytes(8 * len(permanent)), dtype=np.uint64)
    return yes(drawn, permanent, policy.p3, policy.p4)


def _replace(path: Path, data: bytes) -> None:
    with aside(path) as draft, draft.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
