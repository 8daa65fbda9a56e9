"""Ramps and waves against their formulas, what they are made of, and that a linear model bends with them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from contracts.config.training import Train
from contracts.features.feature_spec import FeatureField, FeatureSpec
from models.examples.batches import ExampleSet
from models.layers import number_encoding
from models.layers.number_encoding import HEIGHT, MOST_BINS, WAVES, Periodic, PiecewiseLinear, build, scaled_edges
from models.networks import registry
from models.training import fitting


def test_a_ramp_rises_from_one_edge_to_the_next() -> None:
    encoding = PiecewiseLinear([np.array([-1.0, 0.0, 2.0]), np.array([5.0])])
    found = encoding(torch.tensor([[-3.0, 0.0], [-0.5, 9.0], [1.0, 5.0], [7.0, 1.0]]))
    assert found.tolist() == [[0.0, 0.0], [0.5, 0.0], [1.0, 0.5], [1.0, 1.0]]
    assert encoding.columns == [0, 0]


def test_waves_are_sines_and_cosines_of_the_number() -> None:
    encoding, dense = Periodic(2), torch.randn(5, 2)
    found = encoding(dense).view(5, 2, 2, WAVES)
    turns = 2 * math.pi * dense[:, :, None] * encoding.frequencies
    torch.testing.assert_close(found[:, :, 0], HEIGHT * torch.sin(turns))
    torch.testing.assert_close(found[:, :, 1], HEIGHT * torch.cos(turns))
    assert found.abs().max() <= HEIGHT
    assert len(encoding.columns) == number_encoding.width(encoding) == 4 * WAVES


def numeric(**more: Any) -> FeatureField:
    return FeatureField(name="x", kind="numeric", side="item", **more)


def test_edges_are_scaled_as_the_number_is() -> None:
    assert scaled_edges(numeric(edges={3: (1.0, 2.0)}, mean=1.5, std=0.5)).tolist() == [-1.0, 1.0]
    logged = scaled_edges(numeric(edges={3: (0.0, math.e - 1.0)}, log=True))
    np.testing.assert_allclose(logged, [0.0, 1.0], rtol=1e-6)
    many = {4: (0.0, 1.0, 2.0), MOST_BINS: (0.0, 0.5, 1.0, 1.0 + 1e-12), 100: tuple(np.linspace(0, 1, 99))}
    assert scaled_edges(numeric(edges=many)).tolist() == [0.0, 0.5, 1.0]  # the finest, and no edge twice
    assert len(scaled_edges(numeric(edges={100: tuple(np.linspace(0, 1, 99))}))) == 99
    assert len(scaled_edges(numeric())) == 0


def test_what_has_no_numbers_or_no_bins_has_no_encoding(spec: FeatureSpec) -> None:
    assert build("plain", spec, ("item",)) is None
    assert build("periodic", spec, ("cross",)) is None
    assert build("piecewise_linear", spec, ("context",)) is None  # the hour has no bins
    assert isinstance(build("periodic", spec, ("context",)), Periodic)
    assert isinstance(build("piecewise_linear", spec, ("item", "cross")), PiecewiseLinear)
    assert number_encoding.width(None) == 0


@pytest.mark.parametrize(("numbers", "bends"), [("plain", False), ("piecewise_linear", True), ("periodic", True)])
def test_a_linear_model_follows_a_bend_that_no_line_follows(
    numbers: str, bends: bool, make_world: Callable[..., Any], spec: FeatureSpec, settings: Train,
    auc: Callable[[np.ndarray, np.ndarray], float],
) -> None:
    """Prices in the middle are clicked. The ids of its bins are drawn apart from the price: they say nothing of it."""
    edges = {3: tuple(np.linspace(0.75, 2.25, 7))}
    fields = [field.model_copy(update={"edges": edges}) if field.name == "price" else field for field in spec.fields]
    world = make_world(lambda columns: 2.0 - 6.0 * np.abs(columns["price"] - 1.5), seed=31)
    finer = spec.model_copy(update={"fields": tuple(fields)})
    train, validation = (ExampleSet(part.folder, finer) for part in (world.train, world.validation))
    chosen = settings.model_copy(update={"numbers": numbers, "epochs": 6})
    torch.manual_seed(1)
    network = registry.build("logistic_regression", finer, chosen)
    fitting.fit(network, train, validation, chosen, seed=1)
    labels = validation.column("_label")
    reached, ceiling = auc(labels, fitting.predict(network, validation)), auc(labels, world.logits)
    assert (reached > ceiling - 0.05) == bends
