"""The server: of a bundle's folder, or of an alias of the registry under a supervisor."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from sluice.commands.command import command

if TYPE_CHECKING:
    from serving.access.doors import Doors
    from serving.console.side_port import Console
    from serving.workers.supervisor import SupervisorSettings

Ready = Callable[[str, str, int], None]  # version, host, port
REGISTRY_PATIENCE = {"MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2", "MLFLOW_HTTP_REQUEST_TIMEOUT": "30"}  # seconds


@command()
def serve(
    bundle: Annotated[str, typer.Argument(metavar="BUNDLE", help="a bundle's folder, or models:/NAME@ALIAS")],
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 picks a free one")] = 50051,
    host: Annotated[str, typer.Option()] = "127.0.0.1",
    log_answers: Annotated[
        Path | None, typer.Option(help="append every answer to the Parquet log in this folder")
    ] = None,
    registry: Annotated[str | None, typer.Option(help="MLflow's address; else MLFLOW_TRACKING_URI")] = None,
    poll_seconds: Annotated[float, typer.Option(min=0.1, help="how often the alias is looked up")] = 5.0,
    connection_seconds: Annotated[
        float, typer.Option(min=0.5, help="how long a caller's connection lives; a change of bundles takes as long")
    ] = 30.0,
    workers: Annotated[int | None, typer.Option(min=1, help="processes that share the port; one per core")] = None,
    cache: Annotated[Path | None, typer.Option(help="an alias: where its bundles lie; below ~/.cache/sluice")] = None,
    tls_certificate: Annotated[
        Path | None, typer.Option(envvar="SLUICE_TLS_CERTIFICATE", help="the server's, in PEM; read again on change")
    ] = None,
    tls_key: Annotated[Path | None, typer.Option(envvar="SLUICE_TLS_KEY", help="of that certificate")] = None,
    tls_client_ca: Annotated[
        Path | None, typer.Option(envvar="SLUICE_TLS_CLIENT_CA", help="mutual TLS: who signs the callers' certificates")
    ] = None,
    access: Annotated[
        Path | None, typer.Option(envvar="SLUICE_ACCESS", help="the file of tokens and of the JWTs' issuer")
    ] = None,
    fresh: Annotated[
        Path | None, typer.Option(help="keep what happens between two bundles in this folder, and use it at once")
    ] = None,
    reflection: Annotated[
        bool | None, typer.Option("--reflection/--no-reflection", help="on unless said otherwise on loopback alone")
    ] = None,
    metrics_port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="a side port: console, /metrics, /readyz; 0 picks one")
    ] = None,
    metrics_host: Annotated[str, typer.Option(help="where it listens; it asks for no token")] = "127.0.0.1",
    records: Annotated[
        Path | None, typer.Option(help="a run's folder, or one of a run a day: the console shows what it says")
    ] = None,
    compare: Annotated[
        str | None, typer.Option(help="the console asks another bundle too: its folder, or HOST:PORT that serves it")
    ] = None,
) -> None:
    """Serve a bundle over gRPC (sluice.v1.Ranking, Events and Catalog, health, reflection) until SIGTERM or Ctrl-C.

    Of an alias the bundle is changed whenever the alias moves, without a failed request; a start without the registry
    serves what was served last.

    Example: sluice serve models:/marketplace@champion --log-answers out/demo/answers
    """
    os.environ["OMP_NUM_THREADS"] = "1"  # read when numpy, torch and FAISS load, so set before them
    from contracts.logs import log_to_stderr
    from serving.workers.supervisor import SupervisorSettings

    log_to_stderr()
    doors = parse_doors(tls_certificate, tls_key, tls_client_ca, access, reflection)
    settings = SupervisorSettings(
        host=host, port=port, answers=log_answers, poll_seconds=poll_seconds, connection_seconds=connection_seconds,
        workers=workers or os.cpu_count() or 1, doors=doors, fresh=fresh)
    open_doors(host, doors)
    if metrics_port is None:
        serve_as_told(bundle, settings, registry, cache, announce)
        return
    from serving.access.doors import is_loopback

    open_to_all = doors.access is None and not is_loopback(metrics_host)
    with (compared(compare) as other,
          side_door(metrics_host, metrics_port, records_command(records, registry)) as console):

        def announced(version: str, host: str, port: int) -> None:
            console.lookup.target = "" if doors.tls or open_to_all else near(host, port)
            console.other.target = other if is_loopback(metrics_host) else ""  # ours asks nobody for a token
            announce(version, host, port)

        serve_as_told(bundle, settings, registry, cache, announced)


@contextmanager
def compared(bundle: str | None) -> Iterator[str]:
    """HOST:PORT of who serves what is compared with, "" for none; a folder is served as long, by a process of its own.
    Raises SluiceError where that does not start."""
    if bundle is None or not Path(bundle).exists():
        warn_of_other(bundle or "")
        yield bundle or ""
        return
    from sluice.demo.server_process import ServerProcess

    with TemporaryDirectory(prefix="sluice-compare-") as folder:
        server = ServerProcess(bundle, Path(folder) / "server.log", options=("--workers", "1"))
        try:
            yield server.target
        finally:
            server.stop()


def warn_of_other(target: str) -> None:
    import logging

    from serving.access.doors import is_loopback

    if target and not is_loopback(target.rpartition(":")[0]):
        logging.getLogger("sluice.serving").warning(
            "THE CONSOLE ASKS %s IN PLAIN TEXT: users and contexts typed there can be read on the way; the token is "
            "left out, so a server there that asks for one refuses", target)


def records_command(folder: Path | None, registry: str | None) -> tuple[str, ...]:
    """What prints the console's records; empty where there are none. It reads MLFLOW_TRACKING_URI by itself: everybody
    on the machine sees a command's words, and there may be a password in it."""
    if folder is None:
        return ()
    return (sys.executable, "-m", "sluice.report.console_records", str(folder),
            *(("--registry", registry) if registry else ()))


def serve_as_told(
    bundle: str, settings: SupervisorSettings, registry: str | None, cache: Path | None, ready: Ready
) -> None:
    """An alias, or a folder by one process or several."""
    from models.tracking.bundle_registry import SCHEME

    if bundle.startswith(SCHEME):
        serve_alias(bundle, settings, registry, cache, ready)
    elif settings.workers > 1:
        serve_shared(Path(bundle), settings, ready)
    else:
        serve_folder(Path(bundle), settings, ready)


@contextmanager
def side_door(host: str, port: int, records: tuple[str, ...] = ()) -> Iterator[Console]:
    """The side port, and the folder through which the serving processes tell it their figures; `records` is a
    command."""
    import logging

    from serving.access.doors import address, is_loopback
    from serving.metrics.metrics_folder import metrics_folder

    if not is_loopback(host):
        logging.getLogger("sluice.serving").warning(
            "THE SIDE PORT LISTENS ON %s: metrics are open to everybody, tokens of the console go there in plain text, "
            "and without --access the console asks nothing of the server; listen on loopback behind a proxy", host)
    with metrics_folder() as folder:
        from serving.console.records import Records
        from serving.console.side_port import Console, side_app, side_port
        from serving.gateway.http_server import Address

        console = Console(records=Records(records))
        with side_port(side_app(folder, console), Address(host, port)) as bound:
            typer.echo(f"console and metrics on http://{address(host, bound)}/")
            yield console


def near(host: str, port: int) -> str:
    """Where this machine reaches a server that listens so."""
    from serving.access.doors import address

    return address({"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host), port)


def parse_doors(
    certificate: Path | None, key: Path | None, client_ca: Path | None, access: Path | None, reflection: bool | None
) -> Doors:
    """Raises ConfigError where a part of TLS is missing."""
    from contracts.errors import ConfigError
    from serving.access.doors import Doors
    from serving.access.tls import TlsFiles

    if certificate is None or key is None:
        if certificate or key or client_ca:
            raise ConfigError("TLS needs --tls-certificate and --tls-key, --tls-client-ca besides for mutual TLS; give "
                              "both, or none of the three")
        return Doors(access=access, reflection=reflection)
    files = TlsFiles(certificate=certificate, key=key, client_ca=client_ca)
    return Doors(tls=files, access=access, reflection=reflection)


def open_doors(host: str, doors: Doors) -> None:
    """Tells an operator what stands open. Raises ConfigError where a file of the doors cannot be used."""
    import logging

    from serving.access.doors import warnings
    from serving.access.gate import Gate
    from serving.access.tls import server_credentials

    if doors.tls is not None:
        server_credentials(doors.tls)
    if doors.access is not None:
        Gate(doors.access)
    for warning in warnings(host, doors):
        logging.getLogger("sluice.serving").warning(warning)


def serve_folder(folder: Path, told: SupervisorSettings, ready: Ready) -> None:
    """In this process, until a signal; refuses what is no bundle, or one whose parity differs."""
    from serving.server.server import ServerSettings, run

    settings = ServerSettings(host=told.host, port=told.port, answers=told.answers, doors=told.doors,
                              fresh=told.fresh)
    run(folder, settings, lambda loaded, bound: ready(loaded.version, told.host, bound))


def serve_shared(folder: Path, settings: SupervisorSettings, ready: Ready) -> None:
    """By several processes, until a signal."""
    from serving.workers.folder_source import FolderSource
    from serving.workers.supervisor import Supervisor

    Supervisor(FolderSource(folder), settings).run(lambda version, port: ready(version, settings.host, port))


def serve_alias(
    reference: str, settings: SupervisorSettings, registry: str | None, cache: Path | None, ready: Ready
) -> None:
    """Until a signal. Bundles are kept in a folder that outlives the server.

    MLflow would ask a silent registry for four minutes; the supervisor asks again by itself, so that a start without
    the registry is a matter of seconds.
    """
    for name, value in REGISTRY_PATIENCE.items():
        os.environ.setdefault(name, value)
    from models.tracking.bundle_registry import BundleRegistry, parse_reference, registry_uri
    from serving.workers.bundle_cache import BundleCache, default_folder
    from serving.workers.registry_source import RegistrySource
    from serving.workers.supervisor import Supervisor

    name, alias = parse_reference(reference)
    uri = registry_uri(registry)
    kept = BundleCache(cache or default_folder(f"{reference} {settings.host}:{settings.port}", uri))
    source = RegistrySource(lambda: BundleRegistry(uri), name, alias, kept.folder)
    Supervisor(source, settings, kept).run(lambda version, port: ready(version, settings.host, port))


def announce(version: str, host: str, port: int) -> None:
    """What a script waits for."""
    from serving.access.doors import address

    typer.echo(f"serving {version} on {address(host, port)}")
