from __future__ import annotations

import pytest
import torch

from contracts.config.training import Train
from models.training import precision
from models.training.precision import fast_precisions, half_precision, multiplies_bf16

CPU = torch.device("cpu")


@pytest.mark.parametrize(("wanted", "half"), [("fp32", False), ("bf16", True)])
def test_what_is_named_is_taken(wanted: str, half: bool) -> None:
    assert half_precision(Train(precision=wanted, hidden=(4,)), CPU, 8) == half  # type: ignore[arg-type]


@pytest.mark.parametrize(("hidden", "rows", "able", "half"), [
    ((256, 128), 256, True, True), ((256, 128), 256, False, False), ((128, 64), 4096, True, False),
    ((400,), 128, True, False), ((), 4096, True, False)])
def test_of_itself_it_is_half_where_that_is_faster(
    hidden: tuple[int, ...], rows: int, able: bool, half: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(precision, "multiplies_bf16", lambda device: able)
    assert half_precision(Train(hidden=hidden, precision="auto"), CPU, rows) == half


def test_the_processor_is_asked() -> None:
    found = torch.cpu.get_capabilities() if hasattr(torch.cpu, "get_capabilities") else {}
    assert multiplies_bf16(CPU) == any(found.get(name, False) for name in precision.FEATURES)


@pytest.mark.parametrize(("able", "found"), [(True, ["fp32", "bf16"]), (False, ["fp32"])])
def test_speeds_are_compared_in_what_the_device_multiplies(
    able: bool, found: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(precision, "multiplies_bf16", lambda device: able)
    assert fast_precisions(CPU) == found
