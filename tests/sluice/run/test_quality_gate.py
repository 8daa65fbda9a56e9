"""The data quality gate on written features: eight quiet days, then one that is poisoned."""

from __future__ import annotations

import pytest
from rich.console import Console

from contracts.artifacts import Artifacts
from contracts.errors import GateRefused
from contracts.summaries.quality import QualitySummary
from contracts.summaries.summary import required
from sluice.run import quality_gate
from tests.pipelines.quiet_days import CONFIG, DAYS, LAST, write_day

CONSOLE = Console(stderr=True, quiet=True)


@pytest.fixture(scope="module")
def out(tmp_path_factory, spark) -> Artifacts:
    found = Artifacts(tmp_path_factory.mktemp("out"))
    for number in range(1, DAYS + 1):
        write_day(found, number)
    return found


def test_a_quiet_day_passes_a_poisoned_one_is_refused_and_its_repair_passes(out):
    found = quality_gate.check_quality(CONFIG, out, CONSOLE)
    assert (found.day, found.refused, len(found.history)) == (LAST, (), DAYS - 1)
    assert found.judged > 0

    write_day(out, DAYS, poisoned=True)
    with pytest.raises(GateRefused, match="column 'city': the share of nulls") as caught:
        quality_gate.check_quality(CONFIG, out, CONSOLE)
    picture = out.quality / f"day={LAST}" / quality_gate.PICTURE
    assert str(picture) in str(caught.value)
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert "city" in required(picture.parent, QualitySummary, "sluice quality").columns

    write_day(out, DAYS + 1)  # a refused day teaches the next one nothing
    assert LAST not in quality_gate.check_quality(CONFIG, out, CONSOLE).history

    write_day(out, DAYS)
    assert quality_gate.check_quality(CONFIG, out, CONSOLE, LAST).refused == ()
    assert not picture.exists()
    assert LAST in quality_gate.check_quality(CONFIG, out, CONSOLE).history
