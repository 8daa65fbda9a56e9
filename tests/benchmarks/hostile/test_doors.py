"""What the benchmark shows at each door is let in by the server's own gate and certificates."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.hostile.doors import DOORS, Keys, main
from serving.access.gate import Gate
from serving.access.role import Role
from serving.access.tls import TlsFiles, server_credentials
from tests.benchmarks.printed_figures import refuses


def test_a_wrong_option_is_refused() -> None:
    assert refuses(main, "some/bundle", "--rounds", "many")


@pytest.mark.parametrize("door", DOORS)
def test_each_door_is_opened_by_its_own_credentials(tmp_path: Path, door: str) -> None:
    keys = Keys(tmp_path)
    options, shown = keys.options(door), keys.credentials(door)
    assert ("--access" in options) == (door != "none") == bool(shown.token)
    assert ("--tls-key" in options) == shown.secure == ("tls" in door)
    assert ("--tls-client-ca" in options) == (shown.certificate is not None) == ("mutual" in door)
    assert all(Path(one).exists() for one in options if not one.startswith("--"))
    if shown.token:
        caller = Gate(tmp_path / "access.toml").caller(shown.metadata)
        assert (caller.name, caller.roles) == ("shop", {Role.RANKING})
    if shown.secure:
        shown.of_channel()
        server_credentials(TlsFiles(certificate=tmp_path / "server.pem", key=tmp_path / "server.key"))
