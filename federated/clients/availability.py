"""Which clients can be reached in a round: patterns that a run can be asked to withstand.

    always
    alternating    clients of group 0 in the first half of each period, of group 1 in the second, of group -1 always
    day_cycle      a share of the day, at an hour of the client's own
    random         each client with a probability of its own, independent of its data
    trace          a text file: one line a round, the numbers of the clients that are there; it starts over at its end
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path

from contracts.config.federated import Federated
from contracts.errors import ConfigError, DataError

Availability = Callable[[int], list[int]]
"""Round (from 1) -> sorted numbers of the clients that can be reached."""


def of_config(settings: Federated, kinds: Sequence[int], seed: int) -> Availability:
    """The configured pattern for as many clients as `kinds` has. Clients of one kind come together: the hour of the day
    is drawn per kind, and groups alternate by its parity."""
    population = len(kinds)
    if settings.availability == "alternating":
        return alternating([kind % 2 for kind in kinds], settings.availability_period)
    if settings.availability == "day_cycle":
        starts = [random.Random(seed * 1_000_003 + kind).random() for kind in kinds]
        return day_cycle(starts, settings.availability_share, settings.availability_period)
    if settings.availability == "random":
        return at_random([settings.availability_share] * population, seed)
    if settings.availability == "trace":
        return trace(Path(settings.availability_trace), population)
    return always(population)


def always(population: int) -> Availability:
    """Everybody, in every round."""
    return lambda number: list(range(population))


def alternating(groups: Sequence[int], period: int) -> Availability:
    """Raises ConfigError on a period that has no two halves."""
    if period < 2:
        raise ConfigError(f"a period of {period} rounds has no two halves; give at least 2")

    def reachable(number: int) -> list[int]:
        half = ((number - 1) % period) * 2 // period
        return [client for client, group in enumerate(groups) if group in (-1, half)]

    return reachable


def day_cycle(starts: Sequence[float], share: float, rounds_a_day: int) -> Availability:
    """`starts`: the part of the day, in [0, 1), at which each client comes; it stays for `share` of a day."""

    def reachable(number: int) -> list[int]:
        now = ((number - 1) % rounds_a_day) / rounds_a_day
        return [client for client, start in enumerate(starts) if (now - start) % 1.0 < share]

    return reachable


def at_random(probabilities: Sequence[float], seed: int) -> Availability:
    """One seed and round give the same clients, in whatever order rounds come."""

    def reachable(number: int) -> list[int]:
        drawn = random.Random(seed * 1_000_003 + number)
        return [client for client, probability in enumerate(probabilities) if drawn.random() < probability]

    return reachable


def trace(path: Path, population: int) -> Availability:
    """Raises DataError when the file cannot be read, is empty or names a client that is not there."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError) as error:
        raise DataError(f"federated.availability_trace: {path} cannot be read ({error}); give a file with a line a "
                        "round, client numbers on it") from None
    rounds = [_of_line(path, number, line, population) for number, line in enumerate(lines, start=1)]
    if not any(rounds):
        raise DataError(f"federated.availability_trace: {path} names no client at all; give a line a round")
    return lambda number: rounds[(number - 1) % len(rounds)]


def _of_line(path: Path, number: int, line: str, population: int) -> list[int]:
    wrong = [word for word in line.split() if not (word.isdecimal() and int(word) < population)]
    if wrong:
        raise DataError(f"federated.availability_trace: line {number} of {path} names {wrong[0]!r}; clients are "
                        f"numbers from 0 to {population - 1}")
    return sorted({int(word) for word in line.split()})
