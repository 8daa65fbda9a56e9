"""Adult and Bank from raw file to scoring bundle: on made-up rows in their exact formats, and on the real files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from contracts.summaries import summary
from contracts.summaries.run import RunSummary
from sluice.cli import app
from tests.sluice.plain_rows import write_adult, write_bank

ROOT = Path(__file__).parents[2]
FAST = {"epochs = 8": "epochs = 1", "epochs = 6": "epochs = 1", "compare_rows = 50000": "compare_rows = 0"}


def sluice(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


def run(example: str, data: str, out: Path, folder: Path | None = None) -> RunSummary:
    """The run's summary; with `folder`, of a copy of the example with the epochs cut."""
    config = ROOT / "examples" / f"{example}.toml"
    if folder is not None:
        text = config.read_text(encoding="utf-8")
        for long, short in FAST.items():
            text = text.replace(long, short)
        config = folder / "quick.toml"
        config.write_text(text, encoding="utf-8")
    done = sluice("run", str(config), "--data", data, "--out", str(out))
    assert done.exit_code == 0, done.stderr
    return summary.required(out, RunSummary, "sluice run")


def check_bundle(out: Path) -> None:
    checked = sluice("verify", str(out / "bundle"))
    assert (checked.exit_code, "nothing can be served" in checked.stdout) == (0, True), checked.stderr
    refused = sluice("serve", str(out / "bundle"), "--port", "0")
    assert (refused.exit_code, "ranks no items" in refused.stderr) == (1, True)
    assert sluice("report", str(out)).exit_code == 0
    assert "the log has no items" in (out / "report.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_rows_in_adults_format_become_a_scoring_bundle(tmp_path: Path) -> None:
    """The official test file is the test window; equal rows all count; "?" is missing, not a value."""
    found = run("adult", str(write_adult(tmp_path, 800)), tmp_path / "out", tmp_path)
    assert found.features is not None
    assert (found.features.ingest.events, found.features.ingest.duplicates) == (1202, 0)
    assert (found.features.windows or {})["test"] == 400
    assert found.features.vocabularies["workclass"] == 2
    assert {"two_tower", "pre_ranker", "item_index"} <= set(found.skipped or {})
    check_bundle(tmp_path / "out")


@pytest.mark.slow
def test_rows_in_banks_format_become_a_scoring_bundle(tmp_path: Path) -> None:
    found = run("bank", str(write_bank(tmp_path, 1500)), tmp_path / "out", tmp_path)
    assert found.features is not None
    assert found.features.ingest.quarantined == 0
    assert sum(window.rows for window in (found.features.check or {}).values()) == 1500
    assert (found.models or {})["logistic_regression"].auc > 0.7
    check_bundle(tmp_path / "out")


@pytest.mark.slow
@pytest.mark.parametrize(("example", "rows"), [("adult", 48_842), ("bank", 41_188)])
def test_the_real_table_becomes_a_scoring_bundle(example: str, rows: int, tmp_path: Path) -> None:
    folder = os.environ.get(example.upper())
    if folder is None:
        pytest.skip(f"{example.upper()} names no folder with the real table")
    found = run(example, folder, tmp_path)
    assert found.features is not None
    assert found.features.ingest.events == rows
    assert (found.models or {})["dnn"].auc > 0.88
    check_bundle(tmp_path)
