"""The ready configurations of public advertising logs, on made-up rows in their exact formats."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from contracts.artifacts import Artifacts
from contracts.config.config import Config, load
from contracts.features.feature_spec import FeatureSpec
from sluice.run import jobs
from sluice.run.bundle_job import build_bundle
from tests.sluice.public_rows import write_avazu, write_criteo, write_taobao

EXAMPLES = Path(__file__).parents[2] / "examples"
QUICK = {"epochs": 3, "tower_epochs": 1, "batch_size": 128, "hidden": (16,), "tower_hidden": (16,), "embedding_dim": 4,
         "lightgbm_rows": 0}


def quick(example: str) -> Config:
    """The example with small models, and few epochs."""
    config = load(EXAMPLES / f"{example}.toml")
    return config.model_copy(update={"train": config.train.model_copy(update=QUICK)})


def made(example: str, data: Path, out: Artifacts, *, bundle: bool = False) -> dict[str, Any]:
    """Summaries of features, training and, where asked for, the bundle."""
    config, console = quick(example), Console(file=io.StringIO())
    found = {"features": jobs.run_features(config, data, out, console)}
    found["pretrain"] = jobs.run_pretrain(config, out, console)
    found["train"] = jobs.run_train(config, out, console).plain()
    if bundle:
        if config.prerank_kind == "fscd":
            found["prerank"] = jobs.run_prerank(config, out, console)
        found["bundle"] = build_bundle(config, out, console).plain()
    return found


@pytest.mark.slow
def test_criteos_format(tmp_path: Path) -> None:
    found = made("criteo", write_criteo(tmp_path), Artifacts(tmp_path / "out"))
    ingest, windows = found["features"]["ingest"], found["features"]["windows"]
    assert (ingest["events"], ingest["quarantined"], ingest["duplicates"]) == (3000, 0, 0)
    assert windows["train"] == pytest.approx(2400, rel=0.05)
    spec = FeatureSpec.read(tmp_path / "out" / "encoding")
    assert sum(field.kind == "numeric" for field in spec.fields) == 13
    assert sum(field.kind == "categorical" for field in spec.fields) == 26
    assert found["features"]["vocabularies"]["C4"] == 12
    aucs = {name: figures["auc"] for name, figures in found["train"]["models"].items()}
    assert list(aucs) == ["logistic_regression", "factorisation_machine", "dnn", "dcn_v2", "final_mlp"]
    assert max(aucs.values()) > 0.7, aucs


@pytest.mark.slow
def test_avazus_format(tmp_path: Path) -> None:
    """Hours become times, the split is by day, ids beyond 63 bits stay apart."""
    found = made("avazu", write_avazu(tmp_path), Artifacts(tmp_path / "out"), bundle=True)
    ingest = found["features"]["ingest"]
    assert (ingest["events"], ingest["quarantined"], ingest["duplicates"]) == (3000, 0, 0)
    assert len(ingest["days"]) == 10
    assert found["features"]["examples"]["train"]["days"] == 7
    assert found["pretrain"]["model"] == "pcf_gnn"
    assert found["train"]["models"]["dnn"]["auc"] > 0.65


@pytest.mark.slow
def test_taobaos_format(tmp_path: Path) -> None:
    """Users, ads and times: up to a bundle that ranks. Days are those of Beijing."""
    found = made("taobao_ads", write_taobao(tmp_path), Artifacts(tmp_path / "out"), bundle=True)
    features = found["features"]
    assert (features["ingest"]["quarantined"], features["ingest"]["users"]["rows"]) == (0, 115)
    assert features["windows"]["test"] == ["2017-05-12T16:00:00+00:00", features["windows"]["test"][1]]
    spec = FeatureSpec.read(tmp_path / "out" / "encoding")
    assert {field.name for field in spec.fields if field.kind == "sequence"} == {"clicked_ads", "clicked_categories"}
    assert features["vocabularies"]["pvalue_level"] == 3
    assert "NULL" not in str(features["vocabularies"])
    assert found["train"]["models"]["dnn"]["auc"] > 0.65
    assert found["bundle"]["parity"]["mismatches"] == 0


@pytest.mark.parametrize("example", ["criteo", "avazu", "taobao_ads"])
def test_the_files_fit_the_configuration(example: str) -> None:
    """Every field reads a column of its table or one that is derived."""
    config = load(EXAMPLES / f"{example}.toml")
    tables = {"user": config.users, "item": config.items}
    for field in config.fields:
        if field.kind in ("categorical", "numeric"):
            sources = [config.log, *(table for table in [tables.get(field.side)] if table)]
            known = " ".join(f"{one.schema_ddl} {' '.join(one.derive)}" for one in sources)
            assert f"{field.source_column} " in f"{known} ", field.name
