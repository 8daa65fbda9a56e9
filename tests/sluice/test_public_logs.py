"""The ready configurations of public advertising logs, on made-up rows in their exact formats."""

from __future__ import annotations

import io
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from contracts.artifacts import Artifacts
from contracts.config.config import Config, load
from contracts.features.feature_spec import FIRST_ID, FeatureSpec
from contracts.summaries.run import RunSummary
from federated.clients import client_files
from federated.clients.prepare import prepare
from serving.bundle.loaded_bundle import LoadedBundle
from serving.request.query import RankQuery
from serving.request.request_features import RequestFeatures
from serving.server.client import RankingClient
from serving.server.connection import RankingFailed
from serving.server.servicer import RankingServicer
from serving.stages.funnel import Funnel
from sluice.release.gate import evaluate_challenger
from sluice.run import jobs
from sluice.run.bundle_job import build_bundle
from tests.serving.in_process_server import InProcessServer
from tests.sluice.public_rows import product, write_avazu, write_beauty, write_criteo, write_frappe, write_taobao

EXAMPLES = Path(__file__).parents[2] / "examples"
QUICK = {"epochs": 3, "tower_epochs": 1, "batch_size": 128, "hidden": (16,), "tower_hidden": (16,), "embedding_dim": 4,
         "lightgbm_rows": 0}
QUICK_PRERANK = {"requests": 200, "evaluation_requests": 40, "warm_steps": 20, "sweep_steps": 10, "tune_steps": 5,
                 "final_steps": 20}


def quick(example: str) -> Config:
    """The example with small models, and few epochs."""
    config = load(EXAMPLES / f"{example}.toml")
    return config.model_copy(update={
        "train": config.train.model_copy(update=QUICK), "prerank": config.prerank.model_copy(update=QUICK_PRERANK)})


def made(example: str, data: Path, out: Artifacts, *, bundle: bool = False) -> RunSummary:
    """Summaries of features, pair rates, training and, where it is wanted, pre-ranking and the bundle."""
    config, console = quick(example), Console(file=io.StringIO())
    features, leaks = jobs.run_features(config, data, out, console)
    pretrained, trained = jobs.run_pretrain(config, out, console), jobs.run_train(config, out, console)
    chosen = jobs.run_prerank(config, out, console) if bundle and config.prerank_kind == "fscd" else None
    return RunSummary(
        name=config.name, features=features, leaks=leaks, pretrain=pretrained, train=trained, prerank=chosen,
        bundle=build_bundle(config, out, console) if bundle else None)


def aucs(run: RunSummary) -> dict[str, float]:
    assert run.train is not None
    return {name: figures.auc for name, figures in run.train.models.items()}


@pytest.mark.slow
def test_criteos_format(tmp_path: Path) -> None:
    run = made("criteo", write_criteo(tmp_path), Artifacts(tmp_path / "out"))
    assert run.features is not None
    ingest, windows = run.features.ingest, run.features.windows
    assert (ingest.events, ingest.quarantined, ingest.duplicates) == (3000, 0, 0)
    assert windows is not None
    assert windows["train"] == pytest.approx(2400, rel=0.05)
    spec = FeatureSpec.read(tmp_path / "out" / "encoding")
    assert sum(field.kind == "numeric" for field in spec.fields) == 13
    assert sum(field.kind == "categorical" for field in spec.fields) == 26
    assert run.features.vocabularies["C4"] == 12
    assert list(aucs(run)) == ["logistic_regression", "factorisation_machine", "dnn", "dcn_v2", "final_mlp"]
    assert max(aucs(run).values()) > 0.7, aucs(run)


@pytest.mark.slow
def test_avazus_format(tmp_path: Path) -> None:
    """Hours become times, the split is by day, ids beyond 63 bits stay apart."""
    run = made("avazu", write_avazu(tmp_path), Artifacts(tmp_path / "out"), bundle=True)
    assert run.features is not None
    assert run.pretrain is not None
    ingest = run.features.ingest
    assert (ingest.events, ingest.quarantined, ingest.duplicates) == (3000, 0, 0)
    assert len(ingest.days) == 10
    assert run.features.examples["train"].days == 7
    assert run.pretrain.model == "pcf_gnn"
    assert aucs(run)["dnn"] > 0.65


@pytest.mark.slow
def test_taobaos_format(tmp_path: Path) -> None:
    """Users, ads and times: up to a bundle that ranks. Days are those of Beijing."""
    run = made("taobao_ads", write_taobao(tmp_path), Artifacts(tmp_path / "out"), bundle=True)
    assert run.features is not None
    assert run.bundle is not None
    ingest, windows, vocabularies = run.features.ingest, run.features.windows, run.features.vocabularies
    assert ingest.users is not None
    assert (ingest.quarantined, ingest.users.rows) == (0, 115)
    assert windows is not None
    assert str(windows["test"]).startswith("('2017-05-12T16:00:00+00:00'")
    spec = FeatureSpec.read(tmp_path / "out" / "encoding")
    assert {field.name for field in spec.fields if field.kind == "sequence"} == {"clicked_ads", "clicked_categories"}
    assert vocabularies["pvalue_level"] == 3
    assert "NULL" not in str(vocabularies)
    assert aucs(run)["dnn"] > 0.65
    assert run.bundle.parity.mismatches == 0


@pytest.mark.slow
def test_beautys_format_ends_in_a_server_that_answers_by_what_follows(tmp_path: Path) -> None:
    """A log of positives alone, up to the wire: candidates of the sequence encoder, which is told of its events."""
    plain, out = quick("amazon_beauty"), Artifacts(tmp_path / "out")
    encoder = {"epochs": 40, "batch": 64, "learning_rate": 0.02, "encoder": {"width": 16}}
    config = Config.model_validate(plain.model_dump() | {
        "train": plain.train.model_dump() | {"models": ["logistic_regression"]}, "crosses": {"budget": 0},
        "retrieve": {"candidates": 30, "events": ["time", "weekday"], "channels": {"sasrec": {"settings": encoder}}},
        "prerank": {"kind": "towers", "keep": 30, "hidden": [8]}, "serve": {"max_limit": 30}})
    run = jobs.run_all(config, write_beauty(tmp_path), out, Console(file=io.StringIO()))
    assert run.retrieval is not None
    at = run.retrieval.recall["30"]
    assert at.quotas["sasrec"] > 0
    assert at.mixed is not None
    assert at.mixed > 0.9
    assert run.bundle is not None
    assert run.bundle.channels is not None
    assert run.bundle.channels["sasrec"].mismatches == 0
    assert evaluate_challenger(out, out.bundle, None, config.gate, seed=0).reasons == ()
    bundle = LoadedBundle.load(out.bundle)
    servicer = RankingServicer(Funnel(bundle), bundle.manifest, bundle.settings.serve)
    with InProcessServer(servicer) as server, RankingClient(server.target) as client:
        answer = client.rank("somebody", limit=30, recent_items=[product(12), product(11), product(10)],
                             recent_times=[time.time() - 86_400 * days for days in (1, 2, 3)],
                             recent_columns={"weekday": ["3", "2", ""]})
        with pytest.raises(RankingFailed, match="weekday"):
            client.rank("somebody", recent_items=[product(12)], recent_columns={"weekdy": ["3"]})
    assert bundle.told is not None
    stored = RequestFeatures(bundle).requester(RankQuery("A00000", 5))
    assert stored.events is not None
    assert (np.diff(stored.events.times) < 0).all()  # newest first
    weekdays = pd.to_datetime(stored.events.times, unit="us").weekday
    known = bundle.told.vocabularies["weekday"]
    assert stored.events.values[:, 0].tolist() == known.look_up([str(day) for day in weekdays], "string").tolist()
    channels = {item.item_id: item.channel for item in answer.items}
    assert channels[product(13)] in ("sasrec", "item_to_item", "two_tower")
    assert "sasrec" in channels.values()
    assert len(answer.items) == len(channels) == 30


def test_frappes_format_gives_clients_without_a_word_of_who_they_are(tmp_path: Path) -> None:
    """No times: windows are shares of all files' rows."""
    config, out = load(EXAMPLES / "frappe.toml"), Artifacts(tmp_path / "out")
    features, _ = jobs.run_features(config, write_frappe(tmp_path), out, Console(file=io.StringIO()))
    assert (features.ingest.events, features.ingest.quarantined) == (3000, 0)
    assert features.examples["train"].rows == pytest.approx(2100, rel=0.05)
    assert prepare(config, out, tmp_path / "federated") == 60
    _, spec = client_files.read_public(tmp_path / "federated")
    assert "user_id" not in spec.by_name
    assert spec.by_name["item_id"].size == 50 + FIRST_ID
    held = [len(client_files.read_client(tmp_path / "federated", number).label) for number in range(60)]
    assert sum(held) == features.examples["train"].rows


@pytest.mark.parametrize("example", ["amazon_beauty", "criteo", "avazu", "frappe", "taobao_ads"])
def test_the_files_fit_the_configuration(example: str) -> None:
    """Every field reads a column of its table or one that is derived."""
    config = load(EXAMPLES / f"{example}.toml")
    tables = {"user": config.users, "item": config.items}
    for field in config.fields:
        if field.kind in ("categorical", "numeric"):
            sources = [config.log, *(table for table in [tables.get(field.side)] if table)]
            known = " ".join(f"{one.schema_ddl} {' '.join(one.derive)}" for one in sources)
            assert f"{field.source_column} " in f"{known} ", field.name
