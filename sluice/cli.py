"""The `sluice` command. Heavy libraries are imported by the step that needs them, so that --help answers at once."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from sluice.commands import (  # noqa: F401
    access_commands,
    catalogue_command,
    demo_command,
    federated_commands,
    gateway_command,
    rank_command,
    run_commands,
    serve_command,
    shared_store_commands,
    ship_catalogue_command,
    tune_command,
    version_commands,
)
from sluice.commands.command import app, command


@command()
def report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="the --out folder of a run or demo")],
    since: Annotated[
        Path | None, typer.Option(help="a run to compare with; the last that was reported of DIR unless given")
    ] = None,
) -> None:
    """One self-contained HTML page with the run's figures and plots, and what changed since the last run.

    Example: sluice report out/demo
    """
    from sluice.report.report import write_report

    typer.echo(write_report(folder, since))


@command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True}, add_help_option=False)
def bench(context: typer.Context, name: Annotated[str, typer.Argument(metavar="NAME")]) -> None:
    """Run a benchmark of benchmarks/, side by side with its peers; further options go to it.

    Example: sluice bench funnel --help
    """
    import subprocess

    from benchmarks.measurement import described
    from contracts.errors import ConfigError
    from contracts.nearest import did_you_mean

    if name == "--help":
        typer.echo(context.get_help())
        return
    known = benchmarks()
    if name not in known:
        raise ConfigError(f"there is no benchmark {name!r}{did_you_mean(name, known)}; there are: {', '.join(known)}")
    if "--help" not in context.args:
        typer.echo(described(["sluice", "bench", name, *context.args]))
        sys.stdout.flush()
    raise typer.Exit(subprocess.run([sys.executable, "-m", known[name], *context.args], check=False).returncode)


def benchmarks() -> dict[str, str]:
    """Name -> module of every file of benchmarks/ that can be started and has a --help; others are parts of those."""
    folder = Path(__file__).parents[1]
    texts = {path: path.read_text("utf-8") for path in sorted((folder / "benchmarks").rglob("*.py"))}
    files = [path for path, text in texts.items() if "__main__" in text and "ArgumentParser(" in text]
    return {path.stem: ".".join(path.relative_to(folder).with_suffix("").parts) for path in files}


def main() -> None:
    """Threads of OpenMP that wait for one another sleep, unless the environment says otherwise: spinning, as is their
    default, they wait for a thread that has lost its core to another process many times as long as it works."""
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # read when numpy, torch and FAISS load, so set before them
    app()


if __name__ == "__main__":
    main()
