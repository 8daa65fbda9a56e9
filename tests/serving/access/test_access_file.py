from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from contracts.errors import ConfigError
from serving.access.access_file import read, read_key
from serving.access.role import Role

HASH = hashlib.sha256(b"secret").hexdigest()
TOKEN = f'[[tokens]]\nname = "shop"\nsha256 = "{HASH}"\nroles = ["ranking"]\n'
JWT = '[jwt]\nkey_file = "key"\nalgorithms = ["HS256"]\nissuer = "i"\naudience = "a"\n'


def written(folder: Path, text: str) -> Path:
    (folder / "access.toml").write_text(text)
    return folder / "access.toml"


def test_tokens_and_an_issuer(tmp_path: Path) -> None:
    found = read(written(tmp_path, TOKEN + "expires = 2027-01-01T00:00:00Z\n" + JWT))
    assert (found.tokens[0].name, found.tokens[0].roles) == ("shop", {Role.RANKING})
    assert found.tokens[0].ends == 1798761600.0
    assert found.jwt is not None
    assert found.jwt.key_file == tmp_path / "key"
    assert read(written(tmp_path, TOKEN)).tokens[0].ends == float("inf")


@pytest.mark.parametrize(("text", "said"), [
    ("", "nobody could call"), ("tokens = 3", "tokens"), ("[[tokens", "no TOML"),
    (TOKEN.replace('"ranking"', '"king"'), "tokens.0.roles"), (TOKEN.replace('["ranking"]', "[]"), "tokens.0.roles"),
    (TOKEN.replace(HASH, "hunter2-in-plain"), "tokens.0.sha256"),
    (TOKEN + 'token = "hunter2-in-plain"', "tokens.0.token"),
    (TOKEN + TOKEN, "'shop' is there twice"), (JWT.replace('"HS256"', '"none"'), "jwt.algorithms"),
    (JWT.replace('"HS256"', '"HS256", "ES256"'), "could sign"), (JWT.replace('"a"', '""'), "jwt.audience"),
])
def test_what_is_wrong_is_named_and_no_secret_shown(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said) as caught:
        read(written(tmp_path, text))
    assert "hunter2" not in str(caught.value)
    assert "access.toml" in str(caught.value)


def test_a_missing_file_and_a_short_secret(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        read(tmp_path / "none.toml")
    issuer = read(written(tmp_path, JWT)).jwt
    assert issuer is not None
    with pytest.raises(ConfigError, match="cannot be read"):
        read_key(issuer)
    issuer.key_file.write_text("hunter2\n")
    with pytest.raises(ConfigError, match="holds 7 bytes") as caught:
        read_key(issuer)
    assert "hunter2" not in str(caught.value)
    issuer.key_file.write_text("a" * 64 + "\n")
    assert read_key(issuer) == b"a" * 64
