"""Tables with known effects, made as such tables look in public: role codes, clicks on adverts, and customers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv

ACCESS_ROWS, CLICK_ROWS, PLAIN_ROWS = 32_769, 100_000, 289_000


def _skewed(random: np.random.Generator, values: int, power: float, rows: int) -> np.ndarray:
    """Places of values, each as often as 1 / rank^power has it."""
    share = 1 / np.arange(1, values + 1) ** power
    return random.choice(values, size=rows, p=share / share.sum())


def _codes(random: np.random.Generator, values: int, low: int, high: int) -> np.ndarray:
    """Different whole numbers in no order."""
    return random.permutation(random.choice(np.arange(low, high), values, replace=False))


def _clicked(random: np.random.Generator, logit: np.ndarray) -> np.ndarray:
    return random.random(len(logit)) < 1 / (1 + np.exp(-logit))


def access(path: Path, rows: int = ACCESS_ROWS, seed: int = 1) -> Path:
    """Who may enter what: nine columns of role codes of five and six digits, and a label of 94% positives."""
    random = np.random.default_rng(seed)

    def effects(values: int, scale: float) -> np.ndarray:
        return random.normal(0, scale, values)

    manager, resource, title = (_skewed(random, values, power, rows) for values, power in
                                ((4243, 0.6), (7518, 0.7), (343, 1.0)))
    roll_up, second = _skewed(random, 128, 1.2, 4243)[manager], random.integers(0, 177, 4243)[manager]
    usual = random.integers(0, 449, 4243)[manager]
    department = np.where(random.random(rows) < 0.8, usual, random.integers(0, 449, rows))
    family = random.integers(0, 67, 343)[title]
    described = np.where(random.random(rows) < 0.6, title * 7 % 2358, _skewed(random, 2358, 0.9, rows))
    columns = {"RESOURCE": (resource, 7518, 0.9), "MGR_ID": (manager, 4243, 0.8), "ROLE_ROLLUP_1": (roll_up, 128, 0.4),
               "ROLE_ROLLUP_2": (second, 177, 0.3), "ROLE_DEPTNAME": (department, 449, 0.6),
               "ROLE_TITLE": (title, 343, 0.5), "ROLE_FAMILY_DESC": (described, 2358, 0.5),
               "ROLE_FAMILY": (family, 67, 0.3), "ROLE_CODE": (title, 343, 0.0)}
    logit = 3.4 + random.normal(0, 0.8, (449, 67))[department, family]
    table = {}
    for name, (place, values, scale) in columns.items():
        logit = logit + effects(values, scale)[place]
        table[name] = _codes(random, values, 4_000, 312_000)[place]
    rows_of = np.column_stack([_clicked(random, logit).astype(int), *table.values()])
    np.savetxt(path, rows_of, fmt="%d", delimiter=",", header=",".join(["ACTION", *table]), comments="")
    return path


def clicks(path: Path, rows: int = CLICK_ROWS, seed: int = 2) -> Path:
    """An advertisement's log without users: address, application, device, system and channel as small codes, times
    written 2017-11-07 9:30, and the time of the download, which there is for positives alone."""
    random = np.random.default_rng(seed)
    app, device, system = (_skewed(random, values, power, rows) for values, power in
                           ((160, 1.1), (100, 2.2), (130, 1.0)))
    address = _skewed(random, 35_000, 0.7, rows)
    channel = np.where(random.random(rows) < 0.8, (app * 3 + random.integers(0, 3, rows)) % 160,
                       _skewed(random, 160, 1.0, rows))
    columns = {"ip": (address, 35_000, 0.6, 364_757), "app": (app, 160, 1.5, 551), "device": (device, 100, 0.8, 3_866),
               "os": (system, 130, 0.5, 866), "channel": (channel, 160, 0.9, 498)}
    logit, table = np.full(rows, -4.0), []
    for place, values, scale, high in columns.values():
        logit = logit + random.normal(0, scale, values)[place]
        table.append(_codes(random, values, 0, high)[place])
    label, seconds = _clicked(random, logit), np.sort(random.integers(0, 4 * 86_400, rows))
    begin = datetime(2017, 11, 6, 16, tzinfo=UTC)
    with path.open("w", encoding="utf-8") as file:
        file.write(",".join([*columns, "click_time", "attributed_time", "is_attributed"]) + "\n")
        for row, codes in enumerate(zip(*table, strict=True)):
            shown = begin + timedelta(seconds=int(seconds[row]))
            taken = _written(shown + timedelta(seconds=int(seconds[row]) % 40_000 + 60)) if label[row] else ""
            file.write(",".join(map(str, codes)) + f",{_written(shown)},{taken},{int(label[row])}\n")
    return path


def plain(path: Path, rows: int = PLAIN_ROWS, seed: int = 3) -> Path:
    """Customers who subscribed or did not: twelve columns, six of words, five of numbers, no times, no users."""
    random = np.random.default_rng(seed)
    words = {"occupation": 14, "region": 52, "education": 16, "status": 7, "contract": 3, "channel": 240}
    logit, table = np.full(rows, -1.2), {}
    for name, values in words.items():
        place = _skewed(random, values, 0.8, rows)
        logit = logit + random.normal(0, 0.5, values)[place]
        table[name] = pa.DictionaryArray.from_arrays(place, [f"{name} {code}" for code in range(values)])
    age, balance = random.integers(18, 90, rows), np.round(random.lognormal(7, 1.5, rows), 2)
    logit = logit + 0.02 * (age - 45) + 0.2 * (np.log(balance) - 7)
    numbers = {"age": age, "balance": balance, "hours": random.integers(1, 99, rows),
               "calls": random.poisson(2, rows), "gain": np.round(random.exponential(300, rows), 1)}
    label = np.where(_clicked(random, logit), "yes", "no")
    columns = {**{name: column.cast(pa.string()) for name, column in table.items()}, **numbers, "subscribed": label}
    pa.csv.write_csv(pa.table(columns), path)
    return path


def _written(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d} {moment.hour}:{moment:%M}"
