from __future__ import annotations

import pytest
from rich.console import Console

from benchmarks.federated.federated import main
from benchmarks.federated.federated_auc import single_holders, spread, with_data
from contracts.artifacts import Artifacts
from contracts.config.config import load
from federated.clients import prepare
from tests.benchmarks.printed_figures import last_line


@pytest.mark.slow
def test_every_setting_stands_beside_central_training(log, capsys):
    config, out = log
    main(["--levels", "--auc", str(config), "--out", str(out), "--unmasked", "--settings", "cpp2", "central",
          "--seeds", "2", "--json"])
    text = capsys.readouterr().out
    found = last_line(text)["federated"]
    assert set(found["auc"]) == {"cpp2", "central"}
    assert all(0 <= auc <= 1 for auc in found["auc"].values())
    seeds = found["of_config"]["auc_of_seeds"]
    assert {name: values[0] for name, values in seeds.items()} == found["auc"]
    assert {len(values) for values in seeds.values()} == {2}
    assert 0 <= found["of_config"]["single_holders"] <= 1
    assert "| setting | test AUC after rounds |" in text


def test_a_union_of_one_client_has_one_holder_each(log, tmp_path):
    path, out = log
    config = load(path)
    alone = config.model_copy(update={"federated": config.federated.model_copy(update={"clients": 1})})
    prepare.prepare(config, Artifacts(out), tmp_path / "clients")
    assert single_holders(alone, tmp_path / "clients") == 1
    assert single_holders(config, tmp_path / "clients") < 1


def test_encoded_data_is_left_as_it_is(log):
    path, out = log
    before = {file: file.stat().st_mtime_ns for file in out.rglob("*.parquet")}
    with_data(load(path), None, Artifacts(out), Console(quiet=True))
    assert {file: file.stat().st_mtime_ns for file in out.rglob("*.parquet")} == before


def test_one_seed_has_no_deviation():
    assert spread([0.5]) == "0.5000"
    assert spread([0.4, 0.6]) == f"0.5000 ± {0.02 ** 0.5:.4f}"


def test_a_configuration_that_is_missing_is_refused(tmp_path):
    with pytest.raises(Exception, match="nowhere"):
        main(["--levels", "--auc", str(tmp_path / "nowhere.toml"), "--out", str(tmp_path)])
