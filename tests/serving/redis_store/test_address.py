from __future__ import annotations

import pytest

from contracts.errors import ConfigError
from serving.redis_store.address import PASSWORD, check_address, loop_client, waiting_client


@pytest.mark.parametrize("address", ["redis://127.0.0.1:6379/0", "rediss://reader@store.internal",
                                     "rediss://store:6380/?ssl_ca_certs=/etc/ssl/own.pem"])
def test_an_address_is_taken_as_it_is(address: str) -> None:
    assert check_address(address) == address


@pytest.mark.parametrize(("address", "said"), [
    ("127.0.0.1:6379", "no address"), ("http://store", "no address"), ("redis://", "no address"),
    ("redis://me:secret@store", PASSWORD), ("redis://store/0?password=secret", PASSWORD),
    ("redis://store:port/0", "no address"), ("redis://store:99999", "no address"), ("redis://[store", "no address"),
    ("redis://store/users", "no address"), ("http://store?password=secret", "no address"),
    ("redis://store/0?decode_responses=true", "decode_responses")])
def test_what_is_none_or_shows_a_password_is_refused_without_repeating_it(address: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said) as refused:
        check_address(address)
    assert "secret" not in str(refused.value)


def test_both_clients_bring_the_password_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PASSWORD, "secret")
    waiting, of_loop = waiting_client("redis://store"), loop_client("redis://store", 2, 0.1)
    assert waiting.connection_pool.connection_kwargs["password"] == "secret"
    assert of_loop.connection_pool.connection_kwargs["password"] == "secret"
