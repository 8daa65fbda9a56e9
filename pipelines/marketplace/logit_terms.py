"""What makes the simulated users click: the terms of the logit, scaled until each component has its declared share.

Shares are shares of the summed variances of the components over impressions as the logging policy shows them.
Interactions are centred, so that a planted cross has no main effect that a linear model could pick up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from contracts.errors import ConfigError
from pipelines.marketplace.truth import CONTEXT, Term, Truth, expected_sigmoid
from pipelines.marketplace.world import LEVELS, SLATE, Codes, Population

LOGIT_VARIANCE = 1.8
TASTE_DIM = 4
SHARES = {
    "fields": 0.355,
    "crosses_order_2": 0.3,
    "crosses_order_3": 0.03,
    "segment_taste": 0.02,
    "personal_taste": 0.01,
    "item_quality": 0.075,
    "pair_low_rank": 0.015,
    "pair_attributes": 0.02,
    "pair_idiosyncratic": 0.005,
    "position": 0.05,
    "noise": 0.12,
}
PLANTED: list[tuple[str, ...]] = [
    ("age_band", "format"),
    ("income_band", "brand_tier"),
    ("placement", "format"),
    ("device", "brand_tier"),
    ("age_band", "device", "format"),
    ("gender", "device", "brand_tier"),
]
INCIDENTAL: list[tuple[str, ...]] = [("occupation", "category"), ("region", "brand_tier"), ("city", "brand")]
FIELD_WEIGHTS = {
    "age_band": 2.0, "gender": 1.0, "city": 0.5, "occupation": 1.0, "income_band": 1.0, "tenure_days": 1.5,
    "category": 4.0, "brand_tier": 2.0, "format": 3.0, "price": 3.0, "tags": 1.5,
    "device": 1.5, "placement": 2.0, "hour": 1.0,
}  # fmt: skip
QUALITY_WEIGHTS = {"advertiser_id": 0.6, "brand": 0.2, "item": 0.2}

Sample = Callable[[], tuple[np.ndarray, np.ndarray, Codes, np.ndarray]]


@dataclass(frozen=True)
class Draft:
    """Unscaled terms; a term's weight is its share within its component."""

    terms: tuple[Term, ...]
    weights: tuple[float, ...]
    user_taste: np.ndarray
    item_taste: np.ndarray
    popularity_rank: np.ndarray

    def table(self, component: str) -> np.ndarray:
        return next(term.table for term in self.terms if term.component == component)


def declared(shares: Mapping[str, float]) -> dict[str, float]:
    """The shares to use, SHARES where none are given. Raises ConfigError unless all are there and add up to 1."""
    if not shares:
        return dict(SHARES)
    if set(shares) != set(SHARES):
        odd = sorted(set(shares) ^ set(SHARES))
        raise ConfigError(f"simulation.shares: {', '.join(odd)} missing or unknown; name exactly {', '.join(SHARES)}")
    if abs(sum(shares.values()) - 1) > 1e-6 or min(shares.values()) < 0:
        raise ConfigError(f"simulation.shares add up to {sum(shares.values()):g}; they must add up to 1, none below 0")
    return dict(shares)


def margin(population: Population, field: str) -> np.ndarray:
    """Share of each value of a field among users, items or (evenly) contexts."""
    codes = population.users.get(field, population.items.get(field))
    if codes is None:
        return np.full(len(population.values[field]), 1 / len(population.values[field]))
    size = len(population.values.get(field, range(LEVELS)))
    return np.bincount(codes, minlength=size) / len(codes)


def centred(table: np.ndarray, margins: list[np.ndarray]) -> np.ndarray:
    """The pure interaction: weighted by `margins`, it averages to 0 along every axis."""
    for axis, weights in enumerate(margins):
        shape = [1] * table.ndim
        shape[axis] = -1
        table = table - (table * weights.reshape(shape)).sum(axis=axis, keepdims=True)
    return table


def _cross(rng: np.random.Generator, population: Population, component: str, fields: tuple[str, ...]) -> Term:
    """Values near +1 or -1: every cell of a cross matters."""
    margins = [margin(population, field) for field in fields]
    shape = tuple(len(m) for m in margins)
    raw = rng.choice([-1.0, 1.0], shape) * rng.uniform(0.7, 1.3, shape)
    return Term(component, fields, centred(raw, margins))


def _low_rank(rng: np.random.Generator, population: Population, component: str, fields: tuple[str, str]) -> Term:
    margins = [margin(population, field) for field in fields]
    left, right = (rng.normal(0, 1, (len(m), TASTE_DIM)) for m in margins)
    return Term(component, fields, centred(left @ right.T, margins))


def _field_terms(rng: np.random.Generator, population: Population) -> list[tuple[Term, float]]:
    """Main effects: normal per value; smooth in tenure, price and hour; summed over an item's tags."""
    level = np.linspace(-1, 1, LEVELS)
    phase = 2 * np.pi * np.arange(24) / 24
    tag_effect = np.append(rng.normal(0, 1, len(population.values["tag"])), 0.0)
    special = {
        "tenure_days": np.sin(2.5 * level),
        "price": -level - 0.8 * level**2,
        "hour": np.cos(phase - 5.5) + 0.3 * np.cos(2 * phase),
        "tags": tag_effect[population.tags].sum(axis=1),
    }
    terms = []
    for field, weight in FIELD_WEIGHTS.items():
        table = special[field] if field in special else rng.normal(0, 1, len(population.values[field]))
        terms.append((Term("fields", ("item",) if field == "tags" else (field,), table), weight))
    return terms


def draft(population: Population, rng: np.random.Generator) -> Draft:
    weighted = _field_terms(rng, population)
    weighted += [(_cross(rng, population, f"crosses_order_{len(fields)}", fields), 1.0) for fields in PLANTED]
    weighted.append((_low_rank(rng, population, "segment_taste", ("occupation", "category")), 1.0))
    quality = {f: rng.normal(0, 1, len(population.values[f])) for f in QUALITY_WEIGHTS}
    weighted += [(Term("item_quality", (f,), table), QUALITY_WEIGHTS[f]) for f, table in quality.items()]
    weighted.append((_low_rank(rng, population, "pair_low_rank", ("city", "brand")), 1.0))
    weighted.append((_cross(rng, population, "pair_attributes", ("region", "brand_tier")), 1.0))
    weighted.append((_cross(rng, population, "pair_idiosyncratic", ("city", "brand")), 1.0))
    weighted.append((Term("position", ("position",), -np.log2(1.0 + np.arange(SLATE))), 1.0))
    known = sum(np.sqrt(QUALITY_WEIGHTS[f]) * table[population.items[f]] for f, table in quality.items())
    items = len(population.price)
    return Draft(
        terms=tuple(term for term, _ in weighted),
        weights=tuple(weight for _, weight in weighted),
        user_taste=rng.normal(0, 1, (len(population.tenure_days), TASTE_DIM)),
        item_taste=rng.normal(0, 1, (items, TASTE_DIM)),
        popularity_rank=np.argsort(np.argsort(-0.4 * known - rng.normal(0, 1, items), kind="stable"), kind="stable"),
    )


def _scaled(truth: Truth, weights: tuple[float, ...], codes: Codes, shares: Mapping[str, float]) -> Truth:
    """Every term to its weight, then every component to its share of LOGIT_VARIANCE."""
    terms = [
        replace(term, table=term.table * np.sqrt(weight / max(value.var(), 1e-12)))
        for term, weight, (_, value) in zip(truth.terms, weights, truth.components(codes), strict=False)
    ]
    truth = replace(truth, terms=tuple(terms))
    sums: dict[str, np.ndarray] = {}
    for component, value in truth.components(codes):
        sums[component] = sums.get(component, 0.0) + value
    scale = {c: float(np.sqrt(shares[c] * LOGIT_VARIANCE / value.var())) for c, value in sums.items()}
    return replace(
        truth,
        terms=tuple(replace(term, table=term.table * scale[term.component]) for term in terms),
        user_taste=truth.user_taste * scale["personal_taste"],
    )


def _solved_intercept(logit: np.ndarray, noise_std: float, click_rate: float) -> float:
    """The intercept at which the mean probability is the wanted click rate, by bisection to 1e-9."""
    low, high = -30.0, 30.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (low, middle) if expected_sigmoid(logit + middle, noise_std).mean() > click_rate else (middle, high)
    return (low + high) / 2


def make_truth(
    population: Population, drawn: Draft, sample: Sample, shares: Mapping[str, float], click_rate: float
) -> Truth:
    """`sample` gives users, items, context codes and positions of impressions as the policy would show them."""
    users, items, context, position = sample()
    truth = Truth(
        values=population.values, users=population.users, items=population.items, terms=drawn.terms,
        user_taste=drawn.user_taste, item_taste=drawn.item_taste, intercept=0.0,
        noise_std=float(np.sqrt(shares["noise"] * LOGIT_VARIANCE)), planted=PLANTED, incidental=INCIDENTAL,
    )  # fmt: skip
    codes = truth.codes(users, items, {name: context[name] for name in CONTEXT}, position)
    truth = _scaled(truth, drawn.weights, codes, shares)
    return replace(truth, intercept=_solved_intercept(truth.logit(codes), truth.noise_std, click_rate))
