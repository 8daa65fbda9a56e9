from __future__ import annotations

import pytest

from benchmarks.models.seeds import main, spread
from tests.benchmarks.printed_figures import refuses


@pytest.mark.parametrize(("values", "said"), [
    ([0.25, 0.75], "0.5000 ± 0.3536"), ([0.5], "0.5000 ± 0.0000"), ([None, 0.5], "0.5000 ± 0.0000"), ([None], "-")])
def test_a_spread_is_of_the_figures_there_are(values, said):
    assert spread(values) == said


def test_a_run_needs_a_folder():
    assert refuses(main, "some.toml")


@pytest.mark.slow
def test_every_model_has_a_figure_of_every_seed(run):
    assert set(run.seeds) == {"logistic_regression", "dnn"}
    for figures in run.seeds.values():
        assert set(figures) == {"auc", "gauc"}
        for values in figures.values():
            assert len(set(values)) == 2  # another seed, another model
            assert all(0 <= value <= 1 for value in values)
