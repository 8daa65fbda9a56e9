from __future__ import annotations

import pytest

from contracts.errors import RequestError
from serving.gateway.call_options import metadata, seconds


@pytest.mark.parametrize(("given", "expected"), [
    ("50m", 0.05), ("2S", 2.0), ("1H", 3600.0), ("10u", 1e-5), ("3M", 180.0)])
def test_a_timeout_is_written_as_grpc_does(given: str, expected: float) -> None:
    assert seconds({"grpc-timeout": given}) == pytest.approx(expected)


@pytest.mark.parametrize("given", ["99999999H", "99999999M", "8761H"])
def test_a_timeout_of_more_than_a_year_is_a_year(given: str) -> None:
    """gRPC reads some that are longer as times that are over."""
    assert seconds({"grpc-timeout": given}) == 31_536_000.0


def test_without_one_the_server_decides() -> None:
    assert seconds({}) is None


@pytest.mark.parametrize("given", ["", "50", "50ms", "-1S", "1.5S", "123456789S", "S"])
def test_what_is_no_time_is_refused(given: str) -> None:
    with pytest.raises(RequestError, match="50m"):
        seconds({"grpc-timeout": given})


def test_who_calls_and_the_trace_go_along_and_nothing_else() -> None:
    headers = {"authorization": "Bearer x", "sluice-tenant": "shop", "traceparent": "00-1-1-01", "cookie": "secret"}
    assert dict(metadata(headers)) == {name: headers[name] for name in headers if name != "cookie"}


@pytest.mark.parametrize("name", ["authorization", "sluice-tenant", "traceparent", "tracestate"])
@pytest.mark.parametrize("given", ["Bearer \xe9", "Bearer \x7f", "a\tb"])
def test_what_grpc_does_not_carry_is_refused_and_not_shown(name: str, given: str) -> None:
    with pytest.raises(RequestError, match=f"{name}: .*send printable ASCII alone") as refused:
        metadata({name: given})
    assert given not in str(refused.value)
