"""A bundle is whole or not there: checksums, versions, full disks and kills while publishing."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from contracts.bundle.bundle import (
    MANIFEST,
    SCHEMA_VERSION,
    load_array,
    load_weights,
    publish,
    read_manifest,
    save_array,
    save_weights,
    verify,
)
from contracts.config.config import Config
from contracts.errors import BundleError, BundleVersionError, ChecksumError
from contracts.summaries.bundle import BundleMetrics, ModelMetrics, ParityFigures
from tests import small_disk

ROOT = Path(__file__).resolve().parents[3]
SETTINGS = Config.model_validate({
    "name": "demo", "log": {"path": "log"}, "label": {"expression": "clicked"},
    "fields": [{"name": "category", "kind": "categorical", "side": "item"}]})
METRICS = BundleMetrics(ranker="dnn", models={"dnn": ModelMetrics(auc=0.7)},
                        parity=ParityFigures(rows=3, mismatches=0, max_logit_difference=0.0))

EMPTY = ("settings", "metrics")


def write_build(folder: Path, text: str = "one", size: int = 1000) -> Path:
    (folder / "tables").mkdir(parents=True)
    (folder / "tables" / "keys.npy").write_bytes(bytes(size))
    (folder / "spec.json").write_text(text)
    return folder


@pytest.fixture
def build(tmp_path: Path) -> Path:
    return write_build(tmp_path / "build")


@pytest.fixture
def bundle(build: Path, tmp_path: Path) -> Path:
    publish(build, tmp_path / "bundle", "demo", parents=("p-1",), settings=SETTINGS, metrics=METRICS)
    return tmp_path / "bundle"


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_published_bundle_is_complete(bundle: Path) -> None:
    manifest = verify(bundle)
    assert set(manifest.files) == {"tables/keys.npy", "spec.json"}
    assert (manifest.parents, manifest.settings, manifest.metrics) == (("p-1",), SETTINGS, METRICS)
    assert manifest.version == f"demo-{manifest.content_hash[:12]}"
    assert names(bundle.parent) == {"build", "bundle"}


def test_version_follows_the_content_alone(bundle: Path, tmp_path: Path) -> None:
    other_metrics = METRICS.model_copy(update={"ranker": "din"})
    same = publish(write_build(tmp_path / "same"), tmp_path / "b2", "demo", metrics=other_metrics)
    other = publish(write_build(tmp_path / "other", "two"), tmp_path / "b3", "demo")
    assert same.version == read_manifest(bundle).version != other.version


def test_what_was_not_measured_is_left_out_of_the_manifest(bundle: Path) -> None:
    metrics = json.loads((bundle / MANIFEST).read_text())["metrics"]
    assert metrics.keys() == {"ranker", "parity", "models"}
    assert metrics["models"] == {"dnn": {"auc": 0.7}}


def test_a_manifest_without_settings_and_metrics_has_none(build: Path, tmp_path: Path) -> None:
    publish(build, tmp_path / "bare", "demo")
    raw = json.loads((tmp_path / "bare" / MANIFEST).read_text())
    del raw["seal"]  # as an earlier release wrote it
    for empty in (raw, {**raw, "settings": {}, "metrics": {}}, {k: raw[k] for k in raw if k not in EMPTY}):
        (tmp_path / "bare" / MANIFEST).write_text(json.dumps(empty))
        manifest = verify(tmp_path / "bare")
        assert (manifest.settings, manifest.metrics, manifest.ranker) == (None, None, None)


def test_an_unknown_setting_is_refused_by_name(bundle: Path) -> None:
    raw = json.loads((bundle / MANIFEST).read_text())
    raw["settings"]["serve"]["speed"] = 1
    del raw["seal"]
    (bundle / MANIFEST).write_text(json.dumps(raw))
    with pytest.raises(BundleError, match=r"another version of Sluice: settings\.serve\.speed"):
        verify(bundle)


def test_newer_bundle_replaces_the_older_whole(bundle: Path, tmp_path: Path) -> None:
    later = tmp_path / "later"
    later.mkdir()
    (later / "only.json").write_text("{}")
    publish(later, bundle, "demo")
    assert names(bundle) == {"only.json", MANIFEST}
    verify(bundle)


def test_one_changed_byte(bundle: Path) -> None:
    content = bytearray((bundle / "tables" / "keys.npy").read_bytes())
    content[500] ^= 1
    (bundle / "tables" / "keys.npy").write_bytes(content)
    with pytest.raises(ChecksumError, match=r"tables/keys\.npy differs"):
        verify(bundle)


def test_every_byte_changed_once_is_refused(tmp_path: Path) -> None:
    """Those of the manifest as well, though JSON would not mind some of them."""
    folder = tmp_path / "bundle"
    publish(write_build(tmp_path / "small", size=40), folder, "demo", parents=("p-1",), metrics=METRICS)
    taken = []
    for path in sorted(one for one in folder.rglob("*") if one.is_file()):
        content = path.read_bytes()
        for place, byte in enumerate(content):
            path.write_bytes(b"%b%c%b" % (content[:place], byte ^ (1 + place % 255), content[place + 1 :]))
            with contextlib.suppress(BundleError):
                verify(folder)
                taken.append((path.name, place))
        path.write_bytes(content)
    assert taken == []
    verify(folder)


def test_a_version_of_another_content_is_refused(bundle: Path) -> None:
    raw = json.loads((bundle / MANIFEST).read_text())
    del raw["seal"]
    (bundle / MANIFEST).write_text(json.dumps({**raw, "content_hash": "0" * 64}))
    with pytest.raises(ChecksumError, match="another content"):
        verify(bundle)


def test_missing_file(bundle: Path) -> None:
    (bundle / "spec.json").unlink()
    with pytest.raises(ChecksumError, match=r"spec\.json is missing"):
        verify(bundle)


def test_extra_file(bundle: Path) -> None:
    (bundle / "tables" / "more.npy").write_bytes(b"x")
    with pytest.raises(ChecksumError, match=r"tables/more\.npy differs"):
        verify(bundle)


@pytest.mark.parametrize(("version", "cure"), [(99, "upgrade"), (1, "publish it again")])
def test_another_schema_is_refused_even_when_its_keys_are_unknown(bundle: Path, version: int, cure: str) -> None:
    raw = json.loads((bundle / MANIFEST).read_text())
    (bundle / MANIFEST).write_text(json.dumps({**raw, "schema_version": version, "new": True}))
    with pytest.raises(BundleVersionError, match=rf"schema {version}.*{cure}"):
        verify(bundle)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", f'{{"schema_version": {SCHEMA_VERSION}, "name": "x"}}'])
def test_damaged_manifest(bundle: Path, text: str) -> None:
    (bundle / MANIFEST).write_text(text)
    with pytest.raises(BundleError, match="damaged"):
        verify(bundle)


def test_folder_without_a_manifest(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="is no bundle"):
        verify(tmp_path)


def test_of_a_runs_folder_the_bundle_in_it_is_named(tmp_path: Path) -> None:
    (tmp_path / "bundle").mkdir()
    (tmp_path / "bundle" / MANIFEST).write_text("{}")
    with pytest.raises(BundleError, match=r"is no bundle: .*; the bundle of this run is .*/bundle$"):
        read_manifest(tmp_path)


FULL = """
import sys
from pathlib import Path
from contracts.bundle.bundle import publish, verify
from contracts.errors import BundleError
disk, build, large = map(Path, sys.argv[1:])
before = publish(build, disk / "bundle", "demo")
try:
    publish(large, disk / "bundle", "demo")
except BundleError as error:
    print(error)
assert verify(disk / "bundle") == before
print(*[path.name for path in disk.iterdir()])
"""


def test_full_disk_changes_nothing(build: Path, tmp_path: Path) -> None:
    large = write_build(tmp_path / "large", "two", 200_000)
    said = small_disk.run(FULL, tmp_path / "disk", "64k", build, large).splitlines()
    assert "nothing was changed" in said[0]
    assert said[-1] == "bundle"


def test_refused_write_changes_nothing(bundle: Path, tmp_path: Path) -> None:
    """The limit on file size makes the kernel refuse the write in the middle of a file, on any machine."""
    before = verify(bundle)
    large = write_build(tmp_path / "large", "two", 200_000)
    child = textwrap.dedent("""
        import resource, sys
        from pathlib import Path
        from contracts.bundle.bundle import publish
        from contracts.errors import BundleError
        resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
        try:
            publish(Path(sys.argv[1]), Path(sys.argv[2]), "demo")
        except BundleError as error:
            print(error)
    """)
    command = [sys.executable, "-c", child, str(large), str(bundle)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert "nothing was changed" in done.stdout, done.stderr
    assert verify(bundle) == before
    assert names(tmp_path) == {"build", "bundle", "large"}


# Forks once for every system event of a publication; the fork kills itself at that event.
KILLS = textwrap.dedent("""
    import os, shutil, signal, sys
    from pathlib import Path
    from contracts.bundle.bundle import publish
    from contracts.errors import BundleError

    old, new, destination = (Path(path) for path in sys.argv[1:])
    versions = [publish(build, destination, "demo").version for build in (new, old)]
    event = 0
    while True:
        event += 1
        child = os.fork()
        if child == 0:
            left = [event]
            def hook(name, arguments):
                if name in ("open", "os.rename", "os.mkdir", "os.rmdir", "os.remove"):
                    left[0] -= 1
                    if left[0] == 0:
                        os.kill(os.getpid(), signal.SIGKILL)
            sys.addaudithook(hook)
            publish(new, destination, "demo")
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if os.WIFEXITED(status):
            break
        from contracts.bundle.bundle import verify
        print("absent" if not destination.exists() else ["new", "old"][versions.index(verify(destination).version)])
        for left_over in destination.parent.glob(".*"):
            shutil.rmtree(left_over)
        publish(old, destination, "demo")
""")


def test_killed_at_any_moment_leaves_a_whole_bundle(build: Path, tmp_path: Path) -> None:
    new = write_build(tmp_path / "new", "two")
    place = tmp_path / "place"
    place.mkdir()
    done = subprocess.run([sys.executable, "-c", KILLS, str(build), str(new), str(place / "bundle")], cwd=ROOT,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    moments = done.stdout.split()
    assert {"old", "new"} <= set(moments)
    assert moments == sorted(moments, key=["old", "new"].index)  # an "absent" is not in the list and fails


def test_weights_and_arrays_come_back(tmp_path: Path) -> None:
    array = np.arange(12, dtype=np.float32).reshape(3, 4)
    save_weights(tmp_path / "a" / "w.safetensors", {"x": array.T})
    np.testing.assert_array_equal(load_weights(tmp_path / "a" / "w.safetensors")["x"], array.T)
    save_array(tmp_path / "b" / "x.npy", array.T)
    found = load_array(tmp_path / "b" / "x.npy")
    assert isinstance(found, np.memmap)
    np.testing.assert_array_equal(found, array.T)


def test_objects_are_never_pickled(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="pickle"):
        save_array(tmp_path / "x.npy", np.array([{}], dtype=object))


@pytest.mark.parametrize("name", ["bundle", "shop[1]", "shop]*", "what?"])
def test_what_a_killed_publisher_left_goes_after_an_hour(tmp_path, name):
    build, old, young = tmp_path / "build", tmp_path / f".{name}.0123abcd", tmp_path / f".{name}.4567cdef"
    for folder in (build, old, young):
        folder.mkdir()
        (folder / "file").write_text("x")
    os.utime(old, (1, 1))
    publish(build, tmp_path / name, "shop")
    assert (old.exists(), young.exists()) == (False, True)


def test_what_was_left_of_a_link_goes_and_what_it_led_to_stays(build: Path, tmp_path: Path) -> None:
    """A killed publisher's, that had exchanged the link for its bundle; the one that leads nowhere ends no publish."""
    (tmp_path / "v1").mkdir()
    for name, leads in (("shop", "v1"), (".shop.abcdefgh", "v1"), (".shop.ijklmnop", "gone")):
        (tmp_path / name).symlink_to(leads)
        os.utime(tmp_path / name, (0, 0), follow_symlinks=False)
    publish(build, tmp_path / "shop", "shop")
    assert verify(tmp_path / "shop")
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]
    assert (tmp_path / "v1").is_dir()


def test_a_folder_that_the_system_refuses_is_no_bundle(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match=r"is no bundle.*too long"):
        read_manifest(tmp_path / ("x" * 300))
