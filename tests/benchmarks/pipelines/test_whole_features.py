from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.pipelines.process_cost import Cost
from benchmarks.pipelines.whole_features import CASES, main, plain_csv, summed_up, table
from contracts.config.config import load
from tests.benchmarks.printed_figures import all_finite, last_line, refuses


def test_wrong_options_are_refused() -> None:
    assert refuses(main, "--cases", "abacus")
    assert refuses(main, "--repetitions", "0")
    assert refuses(main, "--scale", "0")


def test_medians_count_and_the_ratio_is_of_these() -> None:
    runs = {name: [Cost(seconds, 2, 100, 0) for seconds in (1, 9, factor)]
            for name, factor in (("published", 4), ("event_fresh", 6))}
    found = summed_up(runs)
    assert found["whole_features"]["event_fresh"]["seconds"] == 6
    assert found["fresh_over_published"] == 1.5
    assert "| event_fresh | 6.0 | 2.0 | 100 | 3 times the published one |" in table(found)
    assert summed_up({"published": runs["published"]})["fresh_over_published"] is None


def test_the_plain_table_is_guessed_from_its_twelve_columns(tmp_path: Path) -> None:
    config = load(plain_csv(tmp_path, 0.01))
    assert len((tmp_path / "raw" / "plain.csv").read_text().splitlines()[0].split(",")) == 12
    assert len(config.fields) == 11
    assert config.log.event_time is None


@pytest.mark.slow
def test_figures_of_real_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cases = ["plain_csv", "event_fresh"]
    main(["--cases", *cases, "--scale", "0.025", "--repetitions", "1", "--out", str(tmp_path), "--json"])
    found = last_line(capsys.readouterr().out)
    assert list(found["whole_features"]) == cases
    assert all_finite(found["whole_features"])
    assert all((tmp_path / name / "made" / "leaks").exists() for name in cases)
    assert load(tmp_path / "event_fresh" / "config.toml").features.publish_every == 0
    assert set(cases) < set(CASES)
