"""Heads of their own are chosen on validation among what is tried, the common one among it, and told on the test."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from benchmarks.federated.federated_personal import Clients, main
from contracts.artifacts import Artifacts
from contracts.config.config import load
from tests.benchmarks.printed_figures import refuses


@pytest.mark.slow
def test_the_best_on_validation_is_shown_beside_the_common_head(log, capsys):
    config, out = log
    main([str(config), "--out", str(out), "--rates", "0.3", "--pulls", "0.1", "5", "--steps", "9", "2", "--json"])
    text = capsys.readouterr().out
    tried = [float(auc) for auc in re.findall(r"\| 0.3 \| (?:0.1|5) \| (?:2|9) \| ([\d.]+) \|", text)]
    found = json.loads(text.splitlines()[-1])
    assert len(tried) == 4
    assert found["own_validation"][0] == pytest.approx(max(*tried, found["common_validation"][0]), abs=1e-4)
    assert found["own_validation"][0] >= found["common_validation"][0]
    assert found["clients"] == 30
    for figure in ("common_test", "own_test", "common_gauc", "own_gauc"):
        assert 0 < found[figure][0] < 1


@pytest.mark.slow
def test_a_descent_that_is_looked_at_on_the_way_ends_where_one_in_a_piece_does(log):
    config, out = log
    clients = Clients(load(config), Artifacts(out), "cpp2")
    piece, looked_at = (clients.scores(0.3, 5.0, steps, "test")[12] for steps in ((12,), (1, 5, 12)))
    assert np.allclose(piece.logits, looked_at.logits, atol=1e-5)
    assert (piece.labels == looked_at.labels).all()
    assert len(piece.labels) == 900


def test_wrong_options_are_refused():
    assert refuses(main, "some.toml")
    assert refuses(main, "some.toml", "--out", "out", "--steps", "many")
