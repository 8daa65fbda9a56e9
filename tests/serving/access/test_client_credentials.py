from __future__ import annotations

from pathlib import Path

import pytest

from contracts.errors import ConfigError
from serving.access.client_credentials import ClientCredentials, token_of


def test_a_token_goes_in_plain_text_to_this_machine_alone() -> None:
    shown = ClientCredentials(token="secret")
    shown.channel("127.0.0.1:1").close()
    shown.channel("[::1]:1").close()
    for target in ("10.0.0.1:1", "example.com:1", "dns:///example.com:1"):
        with pytest.raises(ConfigError, match="in plain text") as caught:
            shown.channel(target)
        assert "secret" not in str(caught.value)
    ClientCredentials(token="secret", tls=True).channel("example.com:1").close()


def test_no_secret_is_shown() -> None:
    assert "secret" not in repr(ClientCredentials(token="secret"))
    assert ClientCredentials(token="secret").metadata == (("authorization", "Bearer secret"),)
    assert ClientCredentials().metadata == ()


def test_files_that_are_missing_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="go together"):
        ClientCredentials(certificate=tmp_path / "c")
    with pytest.raises(ConfigError, match=r"ca\.pem cannot be read"):
        ClientCredentials(ca=tmp_path / "ca.pem").channel("127.0.0.1:1")


def test_a_token_comes_from_a_file_or_the_environment(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("from-file\n")
    assert token_of({"SLUICE_TOKEN": "other"}, tmp_path / "token") == "from-file"
    assert token_of({"SLUICE_TOKEN": " from-environment\n"}) == "from-environment"
    assert token_of({}) == ""
    (tmp_path / "token").write_text("\n")
    with pytest.raises(ConfigError, match="is empty"):
        token_of({}, tmp_path / "token")
