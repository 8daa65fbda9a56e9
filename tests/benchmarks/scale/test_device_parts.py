from __future__ import annotations

from functools import partial

import pytest
import torch

from benchmarks.scale.device_parts import Sizes, look_ups, pre_rank, seconds

CPU = torch.device("cpu")


def test_every_repetition_is_timed_but_those_to_warm_up() -> None:
    calls: list[int] = []
    assert len(seconds(CPU, lambda: calls.append(1), repetitions=4, warm=2)) == 4
    assert len(calls) == 6


def test_shares_of_the_copy_are_bytes_over_its_rate() -> None:
    sizes = Sizes(table=100, look_ups=50, width=4, batch=1, updates=1, side=1, bytes=1, vectors=1, candidates=1)
    found = {name: float(value or 0) for name, value in look_ups(CPU, sizes, copied=1e9).items()}
    for name, passes in (("forward", 2), ("update", 6)):
        expected = passes * 50 * 4 * 4 / (found[f"{name}_ms"] / 1e3) / 1e9
        assert abs(found[f"{name}_share_of_copy"] / expected - 1) < 1e-9


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")  # of the compiler's own imports
def test_the_pre_ranker_s_layers_can_be_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Traced as for every device, without the C++ that a CPU's code would be compiled by for 20 seconds."""
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="aot_eager", fullgraph=True))
    found = pre_rank(CPU, candidates=300, compiled=True)
    assert 0 < float(found["median_ms"] or 0) <= float(found["p90_ms"] or 0)
