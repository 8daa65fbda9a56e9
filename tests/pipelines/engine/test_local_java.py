from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from contracts.errors import SluiceError
from pipelines.engine.local_java import archived_classes, check_java, java_version

SAID = 'openjdk version "17.0.15" 2025-04-15\nOpenJDK 64-Bit Server VM (mixed mode, sharing)'
SESSION = """
from pathlib import Path
from contracts.config.log import SparkSettings
from pipelines.engine.session import session
with session(SparkSettings(master="local[1]"), "classes", leaves_classes=True) as spark:
    java = spark._jvm.java.lang.ProcessHandle.current().pid()
    print(spark.range(5).count(), ".jsa" in Path(f"/proc/{java}/maps").read_text().replace("classes.jsa", ""))
"""


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_402"', 8),
        ('openjdk version "21" 2023-09-19', 21),
        ("?", None),
    ],
)
def test_java_versions_are_read(text: str, version: int | None) -> None:
    assert java_version(text) == version


def test_missing_java_is_one_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(SluiceError, match=r"Spark needs Java 17 or newer and .* is not there; install"):
        check_java()


def test_old_java_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(SluiceError, match=r"needs Java 17 or newer, .* is 11"):
        check_java()


def test_an_archive_is_left_by_the_second_of_two_that_are_to_and_mapped_where_there_is_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "a cache"))
    assert archived_classes(SAID, leaves=False) == ""
    assert archived_classes(SAID, leaves=True) == ""  # the first
    assert archived_classes(SAID, leaves=False) == ""
    wanted = archived_classes(SAID, leaves=True)
    path = Path(wanted.partition('-XX:ArchiveClassesAtExit="')[2].removesuffix('"'))
    assert path.parent == tmp_path / "a cache" / "sluice"
    path.write_bytes(bytes(100))  # Java was killed while it wrote
    assert archived_classes(SAID, leaves=True) == wanted
    path.write_bytes(b"\xf0\x0b\xab\xa8" + bytes(100))
    assert archived_classes(SAID, leaves=False).endswith(f'-XX:SharedArchiveFile="{path}"')
    archived_classes(SAID.replace("17.0.15", "21.0.1"), leaves=True)
    assert archived_classes(SAID.replace("17.0.15", "21.0.1"), leaves=True).endswith('.jsa"')
    assert str(path) not in archived_classes(SAID.replace("17.0.15", "21.0.1"), leaves=True)


def test_a_java_that_shares_no_classes_and_a_closed_cache_leave_it_be(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert archived_classes(SAID.replace(", sharing", ""), leaves=True) == ""
    (tmp_path / "sluice").write_text("a file in the way")
    assert [archived_classes(SAID, leaves=True) for _ in range(2)] == ["", ""]


@pytest.mark.slow
def test_the_third_session_maps_what_the_second_has_left_and_none_says_a_word_of_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "a cache"))
    first = _said()
    assert "5 False" in first
    assert sorted(_said()) == sorted(first)
    folder = tmp_path / "a cache" / "sluice"
    give_up = time.monotonic() + 120
    while "SharedArchiveFile" not in archived_classes(check_java(), leaves=False):
        assert time.monotonic() < give_up, list(folder.iterdir())
        time.sleep(0.2)
    assert sorted(_said()) == sorted(line.replace("5 False", "5 True") for line in first)


def _said() -> list[str]:
    """All that a process says that opens a session."""
    done = subprocess.run([sys.executable, "-c", SESSION], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return (done.stdout + done.stderr).splitlines()
