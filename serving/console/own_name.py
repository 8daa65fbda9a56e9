"""The side port is asked by an address, or by a name that means this machine alone.

A stranger's page may have its own name mean a reader's machine all at once (DNS rebinding): the browser then takes
what is there for the stranger's own, and lets the page read it. It asks by that name. An address means what it says.
"""

from __future__ import annotations

import re
from ipaddress import ip_address

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from contracts.shown import short
from serving.access.doors import is_loopback
from serving.gateway import failures

HOST = re.compile(r"(\[[0-9A-Fa-f:.%]+\]|[^\[\]:]+)(:[0-9]*)?")
LOCAL = "localhost"


class OwnName:
    """Refuses what is asked by another name with 421. Where it listens for others, those of `open_paths` are taken by
    any name: a scraper asks by whatever the network calls this machine."""

    def __init__(self, app: ASGIApp, host: str, open_paths: frozenset[str] = frozenset()) -> None:
        self._app, self._names = app, {LOCAL, host.lower()}
        self._open = frozenset() if is_loopback(host) else open_paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] not in self._open:
            host = Headers(scope=scope).get("host", "")
            if not self.takes(host):
                why = f"this is not {short(host)!r}; ask by an address or localhost, or name it with --metrics-host"
                await failures.refused("PERMISSION_DENIED", why, http=421)(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def takes(self, host: str) -> bool:
        """Of the header Host, with a port or without."""
        found = HOST.fullmatch(host)
        name = found[1].lower() if found else ""
        return name in self._names or _is_address(name.strip("[]"))


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
