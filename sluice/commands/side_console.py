"""What stands beside a server: the side port with metrics and console, and whom the console asks."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import typer

from contracts.errors import ConfigError

if TYPE_CHECKING:
    from serving.access.doors import Doors
    from serving.console.side_port import Console

Ready = Callable[[str, str, int], None]  # version, host, port
log = logging.getLogger("sluice.serving")


@dataclass(frozen=True, kw_only=True)
class SidePort:
    """As told: `port` None for none. The console shows the `records` of a run's folder and of the `registry`, and asks
    who serves `compare`, too: a bundle's folder, or HOST:PORT.

    Raises ConfigError where something is told of a console that there is not.
    """

    host: str = "127.0.0.1"
    port: int | None = None
    records: Path | None = None
    compare: str | None = None
    registry: str | None = None

    def __post_init__(self) -> None:
        lost = [name for name, told in (("--records", self.records), ("--compare", self.compare)) if told is not None]
        if self.port is None and lost:
            raise ConfigError(f"{' and '.join(lost)} would be shown by the console, which there is with --metrics-port "
                              "alone; give it too, or leave them out")


class Targets(NamedTuple):
    """Whom the console asks: the server beside it, and the other one. "" is nobody."""

    own: str
    other: str


@contextmanager
def beside(side: SidePort, doors: Doors, ready: Ready) -> Iterator[Ready]:
    """What a server with these `doors` calls once it serves: `ready`, before which the console is told whom to ask."""
    if side.port is None:
        yield ready
        return
    command = records_command(side.records, side.registry)
    with compared(side.compare) as other, side_door(side.host, side.port, command) as console:

        def announced(version: str, host: str, port: int) -> None:
            console.lookup.target, console.other.target = targets(side.host, doors, near(host, port), other)
            ready(version, host, port)

        yield announced


def targets(host: str, doors: Doors, own: str, other: str) -> Targets:
    """Of a console on `host`, of which only what is on loopback is this machine's alone: others would get through it
    to a server without tokens, as ours is without an access file, and a folder's own process always."""
    from serving.access.doors import is_loopback

    private = is_loopback(host)
    asks_own = doors.tls is None and (private or doors.access is not None)
    return Targets(own if asks_own else "", other if private else "")


@contextmanager
def compared(bundle: str | None) -> Iterator[str]:
    """HOST:PORT of who serves what is compared with, "" for none; a folder is served as long, by a process of its own.
    Raises SluiceError where that does not start, ConfigError for what is neither."""
    if bundle is None or not Path(bundle).exists():
        check_other(bundle or "")
        yield bundle or ""
        return
    from contracts.locks.own_folder import own_folder
    from sluice.demo.server_process import ServerProcess

    with own_folder("sluice-compare.") as folder:
        server = ServerProcess(bundle, folder / "server.log", options=("--workers", "1"), ends_with_us=True)
        try:
            yield server.target
        finally:
            server.stop()


def check_other(target: str) -> None:
    """Warns of one on another machine. Raises ConfigError for what is no HOST:PORT."""
    from serving.access.doors import is_loopback

    if not target:
        return
    host, _, port = target.rpartition(":")
    if not (host and port.isdecimal() and len(port) < 6 and 0 < int(port) < 65_536):
        raise ConfigError(f"--compare {target!r} is neither there, as a bundle's folder would be, nor HOST:PORT with a "
                          "port from 1 to 65535")
    if not is_loopback(host):
        log.warning(
            "THE CONSOLE ASKS %s IN PLAIN TEXT: users and contexts typed there can be read on the way; the token is "
            "left out, so a server there that asks for one refuses", target)


def records_command(folder: Path | None, registry: str | None) -> tuple[str, ...]:
    """What prints the console's records; empty where there are none. It reads MLFLOW_TRACKING_URI by itself: everybody
    on the machine sees a command's words, and there may be a password in it."""
    if folder is None:
        return ()
    return (sys.executable, "-m", "sluice.report.console_records", str(folder),
            *(("--registry", registry) if registry else ()))


@contextmanager
def side_door(host: str, port: int, records: tuple[str, ...] = ()) -> Iterator[Console]:
    """The side port, and the folder through which the serving processes tell it their figures; `records` is a
    command."""
    from serving.access.doors import address, is_loopback
    from serving.metrics.metrics_folder import metrics_folder

    if not is_loopback(host):
        log.warning(
            "THE SIDE PORT LISTENS ON %s: metrics are open to everybody, tokens of the console go there in plain text, "
            "and without --access the console asks nothing of the server; listen on loopback behind a proxy", host)
    with metrics_folder() as folder:
        from serving.console.records import Records
        from serving.console.side_port import Console, side_app, side_port
        from serving.gateway.http_server import Address

        console = Console(records=Records(records))
        with side_port(side_app(folder, console, host), Address(host, port)) as bound:
            typer.echo(f"console and metrics on http://{address(host, bound)}/")
            yield console


def near(host: str, port: int) -> str:
    """Where this machine reaches a server that listens so."""
    from serving.access.doors import address

    return address({"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host), port)
