"""`sluice serve`: a bundle's folder in this process, or an alias of the registry under a supervisor."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import typer

from models.tracking.bundle_registry import SCHEME, BundleRegistry, parse_reference, registry_uri
from serving.server.worker import log_to_stderr


def serve(
    bundle: str, host: str, port: int, answers: Path | None, registry: str | None, poll: float, connection: float
) -> None:
    log_to_stderr()
    if bundle.startswith(SCHEME):
        serve_alias(bundle, host, port, answers, registry, poll, connection)
    else:
        serve_folder(Path(bundle), host, port, answers)


def serve_folder(folder: Path, host: str, port: int, answers: Path | None) -> None:
    os.environ["OMP_NUM_THREADS"] = "1"  # read when torch and FAISS load, so set before them
    from serving.server.server import ServerSettings, run

    settings = ServerSettings(host=host, port=port, answers=answers)
    run(folder, settings, lambda loaded, bound: typer.echo(f"serving {loaded.version} on {host}:{bound}"))


def serve_alias(
    reference: str, host: str, port: int, answers: Path | None, registry: str | None, poll: float, connection: float
) -> None:
    """Bundles lie in a temporary folder while they are served."""
    from serving.server.registry_source import RegistrySource
    from serving.server.supervisor import Supervisor, SupervisorSettings

    name, alias = parse_reference(reference)
    store = BundleRegistry(registry_uri(registry))
    settings = SupervisorSettings(host, port, answers, poll, connection)
    with tempfile.TemporaryDirectory(prefix="sluice-bundles-") as cache:
        source = RegistrySource(store, name, alias, Path(cache))
        Supervisor(source, settings).run(lambda version, bound: typer.echo(f"serving {version} on {host}:{bound}"))
