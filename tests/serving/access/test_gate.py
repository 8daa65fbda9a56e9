from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import NoReturn

import pytest

from contracts.errors import ConfigError
from serving.access import gate as gate_module
from serving.access.callers import UnknownCaller
from serving.access.gate import Forbidden, Gate
from serving.access.new_token import entry

RANK, REFLECT = "/sluice.v1.Ranking/Rank", "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"


def with_token(token: str) -> list[tuple[str, str | bytes]]:
    return [("user-agent", "x"), ("authorization", f"Bearer {token}")]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "access.toml"
    roles = {"shop": "ranking", "ops": "administration"}
    path.write_text("".join(entry(f"{name}-secret", name, [role], None) for name, role in roles.items()))
    return path


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate_module, "LOOK_SECONDS", 0.0)


def changed(path: Path, text: str) -> None:
    """With a time of its own, however coarse the clock of the file system."""
    before = path.stat().st_mtime_ns
    path.write_text(text)
    os.utime(path, ns=(before + 10**9, before + 10**9))


def test_callers_do_what_their_roles_say(file: Path) -> None:
    gate = Gate(file)
    caller = gate.admit(RANK, with_token("shop-secret"))
    assert caller is not None
    assert caller.name == "shop"
    assert gate.admit(REFLECT, with_token("ops-secret")) is not None
    with pytest.raises(Forbidden, match="'shop' may do ranking; this call takes the role administration"):
        gate.admit(REFLECT, with_token("shop-secret"))
    with pytest.raises(Forbidden):
        gate.admit(RANK, with_token("ops-secret"))


def test_a_file_that_may_be_read_by_now_is_in_force(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its time and size are those of the look that failed."""
    gate = Gate(file)
    changed(file, entry("new-secret", "new", ["ranking"], None))

    def forbidden(path: Path) -> NoReturn:
        raise ConfigError(f"{path} cannot be read")

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(gate_module, "read", forbidden)
        with pytest.raises(UnknownCaller):
            gate.admit(RANK, with_token("new-secret"))
    file.chmod(0o640)
    caller = gate.admit(RANK, with_token("new-secret"))
    assert caller is not None
    assert caller.name == "new"


def test_a_look_that_fails_for_a_while_leaves_no_revoked_token_good(
    file: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The file stays as it is; it is one line of the log."""
    gate = Gate(file)
    changed(file, entry("new-secret", "new", ["ranking"], None))

    def out_of_files(path: Path) -> NoReturn:
        raise ConfigError(f"{path} cannot be read (Too many open files)")

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(gate_module, "read", out_of_files)
        for _ in range(3):
            assert gate.caller(with_token("shop-secret")).name == "shop"
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    with pytest.raises(UnknownCaller):
        gate.caller(with_token("shop-secret"))
    assert gate.caller(with_token("new-secret")).name == "new"


def test_health_is_open(file: Path) -> None:
    assert Gate(file).admit("/grpc.health.v1.Health/Check", []) is None


@pytest.mark.parametrize("metadata", [
    [], [("authorization", "shop-secret")], [("authorization", "Basic shop-secret")], [("authorization", "Bearer ")],
    [("authorization", b"Bearer shop-secret")], [("sluice-tenant", "Bearer shop-secret")],
    [("authorization", "Bearer wrong"), ("authorization", "Bearer shop-secret")],
])
def test_who_shows_no_token_is_not_known(file: Path, metadata: list[tuple[str, str | bytes]]) -> None:
    with pytest.raises(UnknownCaller):
        Gate(file).admit(RANK, metadata)


def test_a_changed_file_is_in_force_and_a_broken_one_is_not(file: Path, caplog: pytest.LogCaptureFixture) -> None:
    gate = Gate(file)
    gate.admit(RANK, with_token("shop-secret"))
    changed(file, entry("new-secret", "new", ["ranking"], None))
    assert gate.caller(with_token("new-secret")).name == "new"
    with pytest.raises(UnknownCaller):
        gate.caller(with_token("shop-secret"))
    with caplog.at_level(logging.ERROR):
        changed(file, "half of")
        assert gate.caller(with_token("new-secret")).name == "new"
        file.unlink()
        assert gate.caller(with_token("new-secret")).name == "new"
    assert "who was let in before, still is" in caplog.text
    file.write_text(entry("third-secret", "third", ["ranking"], None))
    assert gate.caller(with_token("third-secret")).name == "third"


def test_a_flood_of_refusals_is_one_line_without_a_secret(file: Path, caplog: pytest.LogCaptureFixture) -> None:
    gate = Gate(file)
    with caplog.at_level(logging.INFO):
        for number in range(1000):
            with pytest.raises(UnknownCaller):
                gate.admit(RANK, with_token(f"guess-{number}"))
    assert len(caplog.records) == 1
    assert "guess" not in caplog.text
