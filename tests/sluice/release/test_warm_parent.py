"""Where training starts from: a real registry and bundles, asked twice, after the alias moved, and against itself."""

from __future__ import annotations

import json

import pytest

from contracts.artifacts import Artifacts
from contracts.bundle.bundle import read_manifest
from contracts.config.config import Config
from contracts.errors import BundleError, ConfigError, DataError
from models.tracking.bundle_registry import BundleRegistry, Lineage
from models.training.warm_start import Parent
from sluice.release.warm_parent import WarmStartSource, parent_of
from tests.serving.conftest import make_config
from tests.sluice.market_run import market_run


@pytest.fixture(scope="module")
def world(tmp_path_factory) -> tuple[Config, Artifacts, Artifacts, BundleRegistry]:
    folder = tmp_path_factory.mktemp("runs")
    first, second = market_run(folder / "a"), market_run(folder / "b", honest=False)
    store = BundleRegistry(f"sqlite:///{folder / 'mlflow.db'}")
    for out in (first, second):
        store.register(out.bundle, Lineage())
    return make_config(), first, second, store


@pytest.fixture(autouse=True)
def _no_store_of_this_machine(monkeypatch) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)


def version(found) -> str | None:
    return read_manifest(found).version if found else None


@pytest.mark.slow
def test_a_run_starts_again_where_it_started(world, tmp_path):
    config, first, second, store = world
    out, asked = Artifacts(tmp_path), WarmStartSource(registry=store.uri)
    one, two = (store.by_hash("market", read_manifest(run.bundle).content_hash) for run in (first, second))
    store.promote(one)
    assert version(parent_of(config, out, asked)) == one.version
    store.promote(two)
    assert version(parent_of(config, out, asked)) == one.version
    out.windows.parent.mkdir(parents=True)
    out.windows.write_text(json.dumps({"train": ["2026-01-02", "2026-01-09"]}))
    assert version(parent_of(config, out, asked)) == two.version
    assert parent_of(config, out, WarmStartSource(cold=True, registry=store.uri)) is None
    store.promote(one)
    assert version(parent_of(config, out, asked)) == one.version


def test_a_first_run_started_cold_and_its_repetition_does_too(world, tmp_path):
    config, first, _, _ = world
    store = BundleRegistry(f"sqlite:///{tmp_path / 'mlflow.db'}")
    out, asked = Artifacts(tmp_path), WarmStartSource()
    assert parent_of(config, out, asked) is None
    store.promote(store.register(first.bundle, Lineage()))
    assert parent_of(config, out, asked) is None
    assert parent_of(config.model_copy(update={"train": config.train.model_copy(update={"warm_start": ""})}), out,
                     asked) is None
    challenger = parent_of(config, out, WarmStartSource("models:/market@challenger"))
    assert version(challenger) == read_manifest(first.bundle).version


def test_folders(world, tmp_path):
    config, first, _, _ = world
    for folder in (first.out, first.bundle):
        found = parent_of(config, Artifacts(tmp_path), WarmStartSource(str(folder)))
        assert found is not None
        assert Parent.read(found).weights("two_tower") is not None
    with pytest.raises(ConfigError, match="is what this run makes"):
        parent_of(config, first, WarmStartSource(str(first.out)))


def test_wrong_use_is_said(world, tmp_path):
    config, first, _, store = world
    with pytest.raises(ConfigError, match="one of them"):
        parent_of(config, first, WarmStartSource("models:/market@champion", cold=True))
    with pytest.raises(BundleError, match="names no version"):
        parent_of(config, Artifacts(tmp_path), WarmStartSource("models:/market@nobody", registry=store.uri))
    with pytest.raises(ConfigError, match="NAME@ALIAS"):
        parent_of(config, Artifacts(tmp_path), WarmStartSource("models:/market", registry=store.uri))
    nothing = parent_of(config, Artifacts(tmp_path), WarmStartSource(str(tmp_path / "nothing")))
    assert nothing is not None
    with pytest.raises(BundleError, match="is no bundle"):
        Parent.read(nothing)


@pytest.mark.slow
def test_a_version_that_is_gone_is_not_replaced_in_silence(world, tmp_path):
    config, first, _, store = world
    out = Artifacts(tmp_path)
    store.promote(store.by_hash("market", read_manifest(first.bundle).content_hash))
    parent_of(config, out, WarmStartSource("models:/market@champion", registry=store.uri))
    empty = BundleRegistry(f"sqlite:///{tmp_path / 'other.db'}")
    with pytest.raises(BundleError, match="no longer has"):
        parent_of(config, out, WarmStartSource("models:/market@champion", registry=empty.uri))


def test_a_file_that_does_not_say_where_training_started_is_named_with_the_cure(world, tmp_path):
    config, _, _, store = world
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "parent.json").write_text('{"version": 3}')
    with pytest.raises(DataError, match=r"models/parent\.json does not say .* remove it"):
        parent_of(config, Artifacts(tmp_path), WarmStartSource(registry=store.uri))
