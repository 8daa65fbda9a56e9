from __future__ import annotations

from dataclasses import replace

import pytest

from models.preranking import sweep as prerank_sweep
from models.preranking.dropped_fields import dropped
from tests.models.prerank_market import COSTS, task


def test_words_say_what_a_field_costs_and_what_its_loss_costs() -> None:
    job = task()
    network, gates, _ = prerank_sweep.gated(job)
    everything = prerank_sweep.tuned(job, network, network.fields, None, gates)
    whole = replace(everything, network=prerank_sweep.finish(task(final_steps=400), everything)[0])
    found = {field.field: field for field in dropped(job, whole, ["taste", "kind"])}
    assert set(found) == {"noise", "quality", "junk", "copy"}
    assert found["copy"].share == pytest.approx(20.0 / sum(COSTS.values()))
    assert found["quality"].recall < -0.1
    assert found["quality"].sentence.startswith("quality: -0.")
    assert "not worth" in found["quality"].sentence
    assert "-83.0% cost" in found["copy"].sentence
    assert "no loss beyond chance" in found["junk"].sentence
