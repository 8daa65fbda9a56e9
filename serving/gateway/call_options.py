"""What of an HTTP request's headers belongs to the call: its deadline, who calls, and the trace it is part of."""

from __future__ import annotations

import re
from collections.abc import Mapping

from contracts.errors import RequestError
from serving.access.caller_name import TENANT

TIMEOUT = "grpc-timeout"  # as gRPC writes it on the wire: "50m" is 50 milliseconds
UNITS = {"H": 3600.0, "M": 60.0, "S": 1.0, "m": 1e-3, "u": 1e-6, "n": 1e-9}
LONGEST = 365 * 24 * 3600.0  # seconds; what lies three centuries ahead is over already, as gRPC reads it
CARRIED = ("authorization", TENANT, "traceparent", "tracestate")


def seconds(headers: Mapping[str, str]) -> float | None:
    """The caller's deadline, LONGEST at most; None leaves it to the server. Raises RequestError for what is no time."""
    given = headers.get(TIMEOUT)
    if given is None:
        return None
    read = re.fullmatch(r"([0-9]{1,8})([HMSmun])", given.strip())
    if read is None:
        raise RequestError(TIMEOUT, f"{given[:20]!r} is no time; send digits and a unit, as in 50m (ms) or 2S")
    return min(int(read[1]) * UNITS[read[2]], LONGEST)


def metadata(headers: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Raises RequestError for what gRPC does not carry; the value, which may be a token, is not shown."""
    for name in CARRIED:
        if re.fullmatch(r"[ -~]*", headers.get(name, "")) is None:
            raise RequestError(name, "holds a character that cannot be sent on; send printable ASCII alone")
    return tuple((name, headers[name]) for name in CARRIED if name in headers)
