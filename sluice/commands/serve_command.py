"""The server: of a bundle's folder, or of an alias of the registry under a supervisor."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sluice.commands.command import command
from sluice.commands.side_console import Ready, SidePort, beside

if TYPE_CHECKING:
    from serving.access.doors import Doors
    from serving.workers.supervisor import SupervisorSettings

WEEK = 604_800.0  # seconds
MOST_PER_CORE, MOST_ANYWHERE = 16, 64  # processes: more would serve less, each with networks of its own in memory
REGISTRY_PATIENCE = {"MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2", "MLFLOW_HTTP_REQUEST_TIMEOUT": "30"}  # seconds


@command()
def serve(
    bundle: Annotated[str, typer.Argument(metavar="BUNDLE", help="a bundle's folder, or models:/NAME@ALIAS")],
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 picks a free one")] = 50051,
    host: Annotated[str, typer.Option(help="the address to listen on")] = "127.0.0.1",
    log_answers: Annotated[
        Path | None, typer.Option(help="append every answer to the Parquet log in this folder")
    ] = None,
    registry: Annotated[str | None, typer.Option(help="MLflow's address; else MLFLOW_TRACKING_URI")] = None,
    poll_seconds: Annotated[
        float, typer.Option(min=0.1, max=WEEK, help="how often alias or folder is looked up")
    ] = 5.0,
    connection_seconds: Annotated[
        float, typer.Option(min=0.5, max=WEEK, help="how long a caller's connection lives; a change of bundles takes as"
                            " long")
    ] = 30.0,
    workers: Annotated[int | None, typer.Option(min=1, help="processes that share the port; one per core")] = None,
    follow: Annotated[
        bool | None, typer.Option("--follow/--no-follow", help="a folder: take over what is put there; on with several"
                                  " workers")
    ] = None,
    cache: Annotated[
        Path | None, typer.Option(help="an alias: where this server alone keeps its bundles; below ~/.cache/sluice")
    ] = None,
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
    user_store: Annotated[
        str | None, typer.Option(envvar="SLUICE_USER_STORE", metavar="PLACE", help="what `sluice publish-features` "
                                 "writes users into: a folder, that of --fresh where not given, or a Redis or Valkey, "
                                 "redis://HOST:PORT")
    ] = None,
    event_stream: Annotated[
        str | None, typer.Option(envvar="SLUICE_EVENT_STREAM", metavar="ADDRESS", help="with --fresh: a Redis, or"
                                 " Valkey, redis://HOST:PORT, whose stream sluice:events is recorded")
    ] = None,
    balancer: Annotated[
        bool, typer.Option("--balancer/--no-balancer", help="HAProxy before the workers: it refuses at once what would"
                           " come too late")
    ] = False,
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

    The bundle is changed whenever the alias moves, or the folder gets another one, without a failed request; a start
    without the registry serves what was served last.

    Example: sluice serve models:/marketplace@champion --log-answers out/demo/answers
    """
    os.environ["OMP_NUM_THREADS"] = "1"  # read when numpy, torch and FAISS load, so set before them
    from contracts.logs import log_to_stderr
    from serving.access.doors import check_host
    from serving.workers.supervisor import SupervisorSettings

    log_to_stderr()
    side = SidePort(host=metrics_host, port=metrics_port, records=records, compare=compare, registry=registry)
    doors = parse_doors(tls_certificate, tls_key, tls_client_ca, access, reflection)
    settings = SupervisorSettings(
        host=host, port=port, answers=log_answers, poll_seconds=poll_seconds, connection_seconds=connection_seconds,
        workers=processes(workers), doors=doors, fresh=fresh, balanced=balancer,
        **stores(user_store, event_stream, fresh))
    open_doors(host, doors)
    if metrics_port is not None:
        check_host(metrics_host, "--metrics-host")
    check_balancer(balancer)
    check_registry(bundle, registry, records)
    with beside(side, doors, announce) as ready:
        serve_as_told(bundle, settings, registry, cache, follow, ready)


def processes(wanted: int | None) -> int:
    """One per core unless told. Raises ConfigError for more than this machine could start."""
    cores = os.cpu_count() or 1
    most = max(MOST_PER_CORE * cores, MOST_ANYWHERE)
    if wanted is not None and wanted > most:
        from contracts.errors import ConfigError

        raise ConfigError(f"--workers {wanted} is above {most}, the most of a machine with {cores} cores: each is a "
                          "process with networks of its own in memory; leave it out for one per core")
    return wanted or cores


def stores(user_store: str | None, event_stream: str | None, fresh: Path | None) -> dict[str, str | None]:
    """Both places, by name. Raises ConfigError where one is none, or events have no place."""
    if user_store is not None:
        from serving.users.user_store import place_of

        place_of(user_store)
    if event_stream is not None:
        from contracts.errors import ConfigError
        from serving.redis_store.address import check_address

        check_address(event_stream)
        if fresh is None:
            raise ConfigError("--event-stream records events, which needs a folder to keep them: give --fresh FOLDER")
    return {"user_store": user_store, "event_stream": event_stream}


def serve_as_told(
    bundle: str, settings: SupervisorSettings, registry: str | None, cache: Path | None, follow: bool | None,
    ready: Ready,
) -> None:
    """An alias, or a folder: by this process alone, or by others that are changed when the folder is. Raises
    ConfigError for a folder with a cache."""
    from contracts.errors import ConfigError
    from models.tracking.bundle_registry import SCHEME

    if bundle.startswith(SCHEME):
        serve_alias(bundle, settings, registry, cache, ready)
    elif cache is not None:
        raise ConfigError(f"--cache {cache} is where bundles of an alias (models:/NAME@ALIAS) are kept, and {bundle} "
                          "is a folder, which is served where it lies: leave --cache out")
    elif settings.workers > 1 or follow or settings.balanced:
        serve_shared(Path(bundle), settings, follow is not False, ready)
    else:
        serve_folder(Path(bundle), settings, ready)


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
    """Tells an operator what stands open. Raises ConfigError where a file of the doors cannot be used, and where nobody
    can listen on the host."""
    import logging

    from serving.access.doors import check_host, warnings
    from serving.access.gate import Gate
    from serving.access.tls import server_credentials

    check_host(host, "--host")
    if doors.tls is not None:
        server_credentials(doors.tls)
    if doors.access is not None:
        Gate(doors.access)
    for warning in warnings(host, doors):
        logging.getLogger("sluice.serving").warning(warning)


def check_balancer(wanted: bool) -> None:
    """Raises ConfigError where one is wanted and there can be none."""
    if wanted:
        from serving.balancer.balancer import program

        program()


def check_registry(bundle: str, registry: str | None, records: Path | None) -> None:
    """Raises ConfigError where nobody would ask the one that is named."""
    from contracts.errors import ConfigError
    from models.tracking.bundle_registry import SCHEME

    if registry is not None and records is None and not bundle.startswith(SCHEME):
        raise ConfigError(f"--registry {registry} is asked for an alias (models:/NAME@ALIAS) and for --records, and "
                          f"{bundle} is a folder: leave --registry out, or name an alias")


def serve_folder(folder: Path, told: SupervisorSettings, ready: Ready) -> None:
    """In this process, until a signal; refuses what is no bundle, or one whose parity differs."""
    from serving.server.server import ServerSettings, run

    settings = ServerSettings(host=told.host, port=told.port, answers=told.answers, doors=told.doors,
                              fresh=told.fresh, user_store=told.user_store, event_stream=told.event_stream)
    run(folder, settings, lambda version, bound, _: ready(version, told.host, bound))


def serve_shared(folder: Path, settings: SupervisorSettings, follow: bool, ready: Ready) -> None:
    """By processes under a supervisor, until a signal."""
    from contextlib import nullcontext

    from serving.workers.bundle_cache import BundleCache
    from serving.workers.folder_source import FolderSource
    from serving.workers.served_copies import served_copies
    from serving.workers.supervisor import Supervisor

    FolderSource(folder)  # what is no bundle is refused before anything is made beside it
    with served_copies(folder) if follow else nullcontext() as copies:
        supervisor = Supervisor(FolderSource(folder, copies), settings, BundleCache(copies) if copies else None)
        supervisor.run(lambda version, port: ready(version, settings.host, port))


def serve_alias(
    reference: str, settings: SupervisorSettings, registry: str | None, cache: Path | None, ready: Ready
) -> None:
    """Until a signal. Bundles are kept in a folder that outlives the server.

    MLflow would ask a silent registry for four minutes; the supervisor asks again by itself, and waits for it ten
    seconds at the start where something was served last (serving/workers/first_start.py).
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
