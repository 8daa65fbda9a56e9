"""`sluice pretrain` as a command: killed and started again, and once more when there is nothing left to do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from contracts.artifacts import WEIGHTS, Artifacts
from contracts.features import vocabulary
from contracts.features.feature_spec import FeatureSpec
from contracts.summaries.pair_rates import PairRatesSummary
from contracts.summaries.summary import required
from models.distributed.run_checkpoint import CHECKPOINTS
from tests.pipelines.cooccurrence.paired_log import VOCABULARIES, rows, spec, write
from tests.sluice.small_day import KILLED, Forks, Kill

THIRD = Kill("os.rename", rf"{CHECKPOINTS}/\.\d", n=3)  # checkpoint
TEXT = """
name = "t"
log = { path = "p", event_time = "t" }
label = { clicks = { path = "c", on = ["k"], window = "1h" } }
train = { checkpoint_minutes = 0.001 }
fields = [
  { name = "city", kind = "categorical", side = "user" }, { name = "region", kind = "categorical", side = "user" },
  { name = "brand", kind = "categorical", side = "item" }, { name = "tags", kind = "multi_valued", side = "item" },
]
[pair_rates]
pairs = [["city", "brand"], ["city", "tags"]]
judge = false
dim = 4
epochs = 24
patience = 24
batch_size = 2
"""


def prepared(folder: Path, name: str) -> Artifacts:
    out = write(folder, name, rows())
    for field, values in VOCABULARIES.items():
        vocabulary.write(out.encoding, field, values)
    spec().write(out.encoding)
    return out


def finished(forks: Forks, config: Path, out: Artifacts) -> PairRatesSummary:
    assert forks.run(command(config, out)) == 0, forks.said()[-3000:]
    return required(out.pair_rates, PairRatesSummary, "sluice pretrain")


def command(config: Path, out: Artifacts) -> list[str]:
    return ["pretrain", str(config), "--out", str(out.out)]


@pytest.fixture
def forks(tmp_path: Path) -> Iterator[Forks]:
    made = Forks(tmp_path / "said.log", OMP_NUM_THREADS="1")
    yield made
    made.close()


@pytest.mark.slow
def test_a_killed_run_goes_on_ends_in_the_same_weights_and_is_done_once(tmp_path: Path, forks: Forks) -> None:
    config = tmp_path / "t.toml"
    config.write_text(TEXT)
    killed, whole = prepared(tmp_path, "killed"), prepared(tmp_path, "whole")
    assert forks.run(command(config, killed), THIRD) == KILLED, forks.said()[-2000:]
    assert any((killed.pair_rates / CHECKPOINTS).glob("[0-9]*"))
    weights = killed.pair_rates / WEIGHTS
    assert not weights.exists()
    assert FeatureSpec.read(killed.encoding) == spec()  # a ranker sees nothing half-done

    resumed, straight = finished(forks, config, killed), finished(forks, config, whole)
    assert resumed.resumed_epochs is not None
    assert 0 <= resumed.resumed_epochs < 24
    assert straight.resumed_epochs == 0
    assert weights.read_bytes() == (whole.pair_rates / WEIGHTS).read_bytes()
    assert [field.parts for field in FeatureSpec.read(killed.encoding).pair_rates()] == [
        ("city", "brand"), ("city", "tags")]

    made = weights.stat().st_mtime_ns
    again = finished(forks, config, killed)
    assert weights.stat().st_mtime_ns == made
    assert again.model_copy(update={"seconds": 0}) == resumed.model_copy(update={"seconds": 0})
