"""The true click probabilities of the simulated marketplace. Read by the report and by tests, by no other step.

    logit(user, item, context, position) = intercept + sum over terms of table[codes of the term's fields]
                                           + <taste of user, taste of item> + noise,     noise ~ N(0, noise_std^2)

The noise is drawn afresh for every impression, so the best any scorer can know is its expectation
p = E[sigmoid(logit)], taken here with 15 Gauss-Hermite nodes (error below 1e-9 for noise_std <= 1).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from contracts.errors import DataError
from pipelines.marketplace.world import SLATE, Codes

CONTEXT = ("device", "placement", "hour")
NODES, NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(15)
PAIR = ("city", "brand")
ARRAYS, META = "truth.npz", "truth.json"


@dataclass(frozen=True)
class Term:
    """One additive table [values of field 1, values of field 2, ...] of a declared component of the logit."""

    component: str
    fields: tuple[str, ...]
    table: np.ndarray


def expected_sigmoid(logit: np.ndarray, noise_std: float) -> np.ndarray:
    """E[sigmoid(logit + noise_std * Z)], Z ~ N(0, 1); same shape as `logit`."""
    total = np.zeros_like(logit)
    for node, weight in zip(NODES, NODE_WEIGHTS, strict=True):
        total += weight / (1.0 + np.exp(-(logit + noise_std * node)))
    return total / NODE_WEIGHTS.sum()


@dataclass(frozen=True)
class Truth:
    """`users` and `items` hold the codes of every user and item; `values` names the codes.

    planted      field sets of the planted crosses, exactly
    incidental   field sets that interact too, through taste and the pair affinity: finding them is no mistake
    """

    values: Mapping[str, tuple[str, ...]]
    users: Codes
    items: Codes
    terms: tuple[Term, ...]
    user_taste: np.ndarray
    item_taste: np.ndarray
    intercept: float
    noise_std: float
    planted: list[tuple[str, ...]]
    incidental: list[tuple[str, ...]]

    @cached_property
    def user_ids(self) -> np.ndarray:
        return np.array(self.values["user"])

    @cached_property
    def item_ids(self) -> np.ndarray:
        return np.array(self.values["item"])

    def probability(
        self,
        user_ids: np.ndarray,
        item_ids: np.ndarray,
        context: Mapping[str, np.ndarray],
        position: np.ndarray | int = 1,
    ) -> np.ndarray:
        """Click probability [N], float64, of impressions with these ids and context columns: those named in CONTEXT,
        `device` and `placement` as strings, `hour` of the day in UTC; others are ignored. Raises DataError for an id,
        a value or a position the world does not have."""
        users, items = self.user_codes(user_ids), self.item_codes(item_ids)
        codes = self.codes(users, items, self.context_codes(context), position)
        return expected_sigmoid(self.logit(codes), self.noise_std)

    def user_codes(self, user_ids: np.ndarray) -> np.ndarray:
        """Places [N] in `user_ids`. Raises DataError for a user the world does not have."""
        return self._users.codes(user_ids)

    def item_codes(self, item_ids: np.ndarray) -> np.ndarray:
        """Places [N] in `item_ids`. Raises DataError for an item the world does not have."""
        return self._items.codes(item_ids)

    def slate(self, user_id: str, context: Mapping[str, object]) -> np.ndarray:
        """Probability [items] of every item for one user at position 1, in the order of `item_ids`."""
        items = np.arange(len(self.item_ids))
        user = np.broadcast_to(self.user_codes(np.array([user_id])), items.shape)
        shown_in = self.context_codes({name: np.array([context[name]]) for name in CONTEXT})
        return expected_sigmoid(self.logit(self.codes(user, items, shown_in, 1)), self.noise_std)

    def pair_rate(self, samples: int = 200, seed: int = 0) -> np.ndarray:
        """True rate [cities, brands] of each value pair, cities and brands in the order of `values`.

        The mean probability at position 1 over `samples` users of the city, items of the brand and contexts, drawn
        independently and uniformly; the standard error is about (deviation within the pair) / sqrt(samples).
        """
        rng = np.random.default_rng(seed)
        cities, brands = len(self.values["city"]), len(self.values["brand"])
        rates = np.empty((cities, brands))
        brand_members = _members(self.items["brand"], brands)
        for city, members in enumerate(_members(self.users["city"], cities)):
            users = rng.choice(members, (brands, samples))
            items = np.stack([rng.choice(m, samples) for m in brand_members])
            context = {name: rng.integers(0, len(self.values[name]), users.shape) for name in CONTEXT}
            logit = self.logit(self.codes(users, items, context, 1))
            rates[city] = expected_sigmoid(logit, self.noise_std).mean(axis=1)
        return rates

    def context_codes(self, context: Mapping[str, np.ndarray]) -> Codes:
        codes: Codes = {}
        for name in CONTEXT:
            if name not in context:
                raise DataError(f"the context has no column {name!r}; the true probability needs {', '.join(CONTEXT)}")
            codes[name] = _Names(np.array(self.values[name]), name).codes(np.asarray(context[name]).astype(str))
        return codes

    @cached_property
    def _users(self) -> _Names:
        return _Names(self.user_ids, "user")

    @cached_property
    def _items(self) -> _Names:
        return _Names(self.item_ids, "item")

    def codes(self, users: np.ndarray, items: np.ndarray, context: Codes, position: np.ndarray | int) -> Codes:
        """Codes of every field a term may read, for user and item codes of one shape."""
        joined = {name: code[users] for name, code in self.users.items()}
        joined |= {name: code[items] for name, code in self.items.items()}
        slots = np.asarray(position) - 1
        if slots.min() < 0 or slots.max() >= SLATE:
            raise DataError(f"positions run from {slots.min() + 1} to {slots.max() + 1}; the world has 1 to {SLATE}")
        return joined | context | {"position": slots}

    def logit(self, codes: Codes) -> np.ndarray:
        """Without the noise."""
        parts = self.components(codes)
        return self.intercept + sum((value for _, value in parts), start=np.zeros(codes["user"].shape))

    def components(self, codes: Codes) -> Iterator[tuple[str, np.ndarray]]:
        """(component, its addend) of each term, and the personal taste last."""
        for term in self.terms:
            yield term.component, term.table[tuple(codes[name] for name in term.fields)]
        tastes = self.user_taste[codes["user"]], self.item_taste[codes["item"]]
        yield "personal_taste", np.einsum("...d,...d->...", *tastes)

    def save(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        arrays = {f"users.{k}": v for k, v in self.users.items()} | {f"items.{k}": v for k, v in self.items.items()}
        arrays |= {f"term.{i}": term.table for i, term in enumerate(self.terms)}
        np.savez(folder / ARRAYS, user_taste=self.user_taste, item_taste=self.item_taste, **arrays)  # type: ignore[arg-type]
        meta = {
            "values": self.values, "terms": [[t.component, t.fields] for t in self.terms], "intercept": self.intercept,
            "noise_std": self.noise_std, "planted": self.planted, "incidental": self.incidental,
        }  # fmt: skip
        (folder / META).write_text(json.dumps(meta), encoding="utf-8")

    @classmethod
    def of_day(cls, folder: Path, day: int) -> Truth:
        """Of a day of the log, from 0 on, where tastes drift; otherwise that of all days. Raises DataError when the
        folder holds no truth."""
        return cls.load(of_day if (of_day := day_folder(folder, day)).is_dir() else folder)

    @classmethod
    def load(cls, folder: Path) -> Truth:
        """Raises DataError when the folder holds no truth."""
        if not (folder / META).exists():
            raise DataError(f"no simulated truth at {folder / META}; only `sluice demo` writes one")
        meta = json.loads((folder / META).read_text(encoding="utf-8"))
        with np.load(folder / ARRAYS, allow_pickle=False) as stored:
            arrays = dict(stored)
        return cls(
            values={name: tuple(values) for name, values in meta["values"].items()},
            users={k.partition(".")[2]: v for k, v in arrays.items() if k.startswith("users.")},
            items={k.partition(".")[2]: v for k, v in arrays.items() if k.startswith("items.")},
            terms=tuple(Term(c, tuple(fields), arrays[f"term.{i}"]) for i, (c, fields) in enumerate(meta["terms"])),
            user_taste=arrays["user_taste"],
            item_taste=arrays["item_taste"],
            intercept=meta["intercept"],
            noise_std=meta["noise_std"],
            planted=[tuple(fields) for fields in meta["planted"]],
            incidental=[tuple(fields) for fields in meta["incidental"]],
        )


def day_folder(folder: Path, day: int) -> Path:
    """Where the truth of a day lies below that of the world."""
    return folder / f"day-{day:03d}"


class _Names:
    """Looks values up in `known` [V], which is sorted once; `what` they are names of."""

    def __init__(self, known: np.ndarray, what: str) -> None:
        self.known, self.what, self.order = known, what, np.argsort(known)

    def codes(self, wanted: np.ndarray) -> np.ndarray:
        """Places [N] in `known`. Raises DataError for what is not there."""
        wanted = np.asarray(wanted)
        places = np.minimum(np.searchsorted(self.known, wanted, sorter=self.order), len(self.known) - 1)
        codes = self.order[places]
        wrong = self.known[codes] != wanted
        if wrong.any():
            raise DataError(
                f"the simulated world has no {self.what} {wanted[wrong][0]!r} ({int(wrong.sum())} such rows)")
        return np.asarray(codes)


def _members(codes: np.ndarray, n: int) -> list[np.ndarray]:
    """Indices that hold each code."""
    order = np.argsort(codes, kind="stable")
    return np.split(order, np.searchsorted(codes[order], np.arange(1, n)))
