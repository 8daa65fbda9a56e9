"""The registry on a real MLflow store: one content one version, aliases move, what comes back is what was entered."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mlflow.utils.uri import is_local_uri

from contracts.bundle import bundle
from contracts.errors import BundleError, ChecksumError, ConfigError
from contracts.features.feature_spec import FeatureField, FeatureSpec
from contracts.summaries.bundle import BundleMetrics, ModelMetrics, ParityFigures
from models.tracking.bundle_registry import (
    CHALLENGER,
    CHAMPION,
    HASH,
    ROLLED_BACK,
    BundleRegistry,
    Lineage,
    RegisteredBundle,
    parse_reference,
    registry_uri,
)
from models.tracking.registered_model import VERSION

SPEC = FeatureSpec(fields=(
    FeatureField(name="age", kind="numeric", side="user", edges={2: (3.0,)}),
    FeatureField(name="device", kind="categorical", side="context", vocabulary="device", size=4),
    FeatureField(name="hour", kind="numeric", side="context", edges={2: (3.0,)}),
    FeatureField(name="brand", kind="categorical", side="item", key_type="int64", vocabulary="brand", size=4),
))
LINEAGE = Lineage("2026-01-01T00:00:00+00:00", "2026-01-08T00:00:00+00:00", "abc123")


def publish(folder: Path, content: str) -> Path:
    """A folder that is a bundle by its manifest; the registry does not look further."""
    build = folder / f"build-{content}"
    build.mkdir(parents=True)
    SPEC.write(build)
    (build / "weights").write_text(content)
    metrics = BundleMetrics(ranker="dnn", models={"dnn": ModelMetrics(auc=0.75)},
                            parity=ParityFigures(rows=0, mismatches=0, max_logit_difference=0.0))
    bundle.publish(build, folder / content, "shop", parents=("shop-before",), metrics=metrics)
    return folder / content


@pytest.fixture(scope="module")
def template(tmp_path_factory) -> Path:
    """A store with its tables, which take seconds to make."""
    folder = tmp_path_factory.mktemp("store")
    BundleRegistry(f"sqlite:///{folder / 'mlflow.db'}").by_alias("shop", CHAMPION)
    return folder / "mlflow.db"


@pytest.fixture
def registry(template, tmp_path) -> BundleRegistry:
    (tmp_path / "mlflow.db").write_bytes(template.read_bytes())
    return BundleRegistry(f"sqlite:///{tmp_path / 'mlflow.db'}")


def test_a_registered_bundle_has_lineage_tags_alias_and_comes_back_whole(registry, tmp_path):
    folder = publish(tmp_path, "one")
    found = registry.register(folder, LINEAGE)
    manifest = bundle.read_manifest(folder)
    assert found.number == "1"
    assert found.version == manifest.version
    wanted = {"content_hash": manifest.content_hash, "parents": "shop-before", "commit": "abc123",
              "test_auc": "0.750000", "data_start": LINEAGE.data_start, "data_end": LINEAGE.data_end, "ranker": "dnn"}
    assert {name: found.tags[name] for name in wanted} == wanted
    assert registry.by_alias("shop", CHALLENGER) == found
    fetched = registry.fetch(found, tmp_path / "cache")
    assert bundle.verify(fetched) == manifest


def test_the_same_content_is_one_version_and_another_content_another(registry, tmp_path):
    one = publish(tmp_path, "one")
    first, again = registry.register(one, LINEAGE), registry.register(one, LINEAGE, alias="shadow")
    second = registry.register(publish(tmp_path, "two"), LINEAGE)
    assert (first.number, again.number, second.number) == ("1", "1", "2")
    assert registry.by_alias("shop", "shadow").number == "1"
    assert registry.by_alias("shop", CHALLENGER).number == "2"


def test_champions_replace_each_other_and_roll_back_in_turn(registry, tmp_path):
    versions = [registry.register(publish(tmp_path, name), LINEAGE) for name in ("one", "two", "three")]
    for version in versions:
        registry.promote(version)
        registry.promote(version)  # a second time changes nothing
    for expected in ("2", "1"):
        left, restored = registry.rollback("shop")
        assert restored.number == expected == registry.by_alias("shop", CHAMPION).number
        assert ROLLED_BACK in registry.by_number("shop", left.number).tags
    with pytest.raises(BundleError, match="replaced none"):
        registry.rollback("shop")


def test_without_a_champion_there_is_nothing_to_roll_back(registry):
    assert registry.by_alias("nobody", CHAMPION) is None
    with pytest.raises(BundleError, match="no champion"):
        registry.rollback("nobody")


def test_a_bundle_that_changed_since_it_was_published_is_not_registered(registry, tmp_path):
    folder = publish(tmp_path, "one")
    (folder / "weights").write_text("other")
    with pytest.raises(ChecksumError):
        registry.register(folder, LINEAGE)
    assert registry.by_hash("shop", bundle.read_manifest(folder).content_hash) is None


@pytest.mark.parametrize("spoil", ["change", "remove"])
def test_a_bundle_that_was_spoilt_in_the_store_is_not_fetched(registry, tmp_path, spoil):
    found = registry.register(publish(tmp_path, "one"), LINEAGE)
    weights = Path(found.source.removeprefix("file://")) / "bundle" / "weights"
    weights.write_text("spoilt") if spoil == "change" else weights.unlink()
    with pytest.raises(ChecksumError):
        registry.fetch(found, tmp_path / "cache")
    assert list((tmp_path / "cache" / "shop").iterdir()) == []


ELSEWHERE = ("../../victim", "..", ".", "", "/etc", "a/b", "a\\b", "a\0b", "a\nb", "x" * 300, "~", ".x")


def test_words_of_the_registry_lead_nowhere_else(registry, tmp_path):
    """`../../victim` was deleted in a trial."""
    victim, cache = tmp_path / "victim", tmp_path / "deep" / "cache"
    victim.mkdir()
    (victim / "dear").write_text("kept")
    (cache / "shop").mkdir(parents=True)
    fine = {VERSION: "shop-1", HASH: "0" * 64}
    for wrong in (*(RegisteredBundle("shop", "1", "file:///nowhere", fine | {VERSION: part}) for part in ELSEWHERE),
                  *(RegisteredBundle(part, "1", "file:///nowhere", fine) for part in ELSEWHERE)):
        with pytest.raises(BundleError, match="no bundle's") as caught:
            registry.fetch(wrong, cache)
        assert len(str(caught.value)) < 300
        assert str(caught.value).isprintable()
    assert (victim / "dear").read_text() == "kept"
    assert list((cache / "shop").iterdir()) == []
    with pytest.raises(BundleError, match="no SHA-256"):
        registry.fetch(RegisteredBundle("shop", "1", "file:///nowhere", fine | {HASH: "../../victim"}), cache)


@settings(max_examples=500, deadline=None, database=None)
@given(st.text(max_size=20) | st.lists(st.sampled_from(["..", ".", "/", "\\", "a", "~", "\0", "\n"])).map("".join),
       st.text(max_size=20), st.text(max_size=20))
def test_no_words_of_the_registry_lead_out_of_the_cache(name, version, content_hash):
    cache = Path("/cache")
    for tags in ({VERSION: version, HASH: "0" * 64}, {VERSION: "shop-1", HASH: content_hash}, {}):
        try:
            found = cache / RegisteredBundle(name, "1", "", tags).path
        except BundleError:
            continue
        assert Path(os.path.normpath(found)).parent.parent == cache


def test_what_lies_in_the_cache_is_verified_and_fetched_again(registry, tmp_path):
    found = registry.register(publish(tmp_path, "one"), LINEAGE)
    fetched = registry.fetch(found, tmp_path / "cache")
    (fetched / "weights").write_text("spoilt")
    assert registry.fetch(found, tmp_path / "cache") == fetched
    assert (fetched / "weights").read_text() == "one"
    other = bundle.verify(publish(tmp_path, "two"))
    shutil.rmtree(fetched)
    shutil.copytree(tmp_path / "two", fetched)  # whole, and another one
    registry.fetch(found, tmp_path / "cache")
    assert bundle.verify(fetched).content_hash == found.tags[HASH] != other.content_hash


def test_a_store_without_the_files_is_said_to_be_so(registry, tmp_path):
    found = registry.register(publish(tmp_path, "one"), LINEAGE)
    Path(found.source.removeprefix("file://")).rename(tmp_path / "gone")
    with pytest.raises(BundleError, match="cannot be read"):
        registry.fetch(found, tmp_path / "cache")


def test_references_and_addresses(monkeypatch, tmp_path):
    assert parse_reference("models:/shop@champion") == ("shop", "champion")
    for wrong in ("models:/shop", "shop@champion", "models:/@champion", "models:/shop/3", "models:/../x@champion",
                  "models:/shop@../x"):
        with pytest.raises(ConfigError, match="models:/NAME@ALIAS"):
            parse_reference(wrong)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    with pytest.raises(ConfigError, match="no model registry"):
        registry_uri(None)
    assert registry_uri(None, tmp_path) == f"sqlite:///{tmp_path / 'mlflow.db'}"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://tracker")
    assert registry_uri(None, tmp_path) == "http://tracker"
    assert registry_uri("http://given", tmp_path) == "http://given"


def listens(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.slow
def test_a_store_behind_a_server_gives_a_bundle_back_whole(template, tmp_path):
    """What MLflow has to download, in place of a copy."""
    (tmp_path / "mlflow.db").write_bytes(template.read_bytes())
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    command = [sys.executable, "-m", "mlflow", "server", "--host=127.0.0.1", f"--port={port}", "--workers=1",
               f"--backend-store-uri=sqlite:///{tmp_path / 'mlflow.db'}", f"--artifacts-destination={tmp_path / 'far'}"]
    server = subprocess.Popen(command, start_new_session=True)
    try:
        until = time.monotonic() + 60
        while not listens(port):
            assert server.poll() is None
            assert time.monotonic() < until
            time.sleep(0.1)
        registry = BundleRegistry(f"http://127.0.0.1:{port}")
        made = registry.register(publish(tmp_path, "one"), LINEAGE)
        assert not is_local_uri(made.source)
        fetched = registry.fetch(made, tmp_path / "cache")
        assert bundle.verify(fetched).content_hash == made.tags[HASH]
        assert (fetched / "weights").read_text() == "one"
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        try:
            server.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(server.pid, signal.SIGKILL)
            server.wait()
