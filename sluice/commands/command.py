"""What all commands share: the application, options of one meaning, errors as one sentence, JSON on the last line."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

app = typer.Typer(
    name="sluice",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="A multi-stage ranking platform: raw logs in, a gRPC server out.\n\n"
    "Exit codes: 0 done, 1 failed, 2 wrong use, 3 refused by a gate, 4 the watch wants a roll-back.",
)

ConfigPath = Annotated[Path, typer.Argument(help="the run's TOML file", metavar="CONFIG")]
Out = Annotated[Path, typer.Option(help="where everything is written")]
Data = Annotated[Path | None, typer.Option(help="the folder that {data} stands for in the configuration")]
Seed = Annotated[int | None, typer.Option(help="instead of the configuration's seed")]
Until = Annotated[str | None, typer.Option(help="read the log as it stood when this day (YYYY-MM-DD) ended")]
AsJson = Annotated[bool, typer.Option("--json", help="print one JSON object as the last line")]
Registry = Annotated[
    str | None, typer.Option(help="MLflow's address; else MLFLOW_TRACKING_URI, else the data base in the run's folder")
]
Warm = Annotated[
    str | None, typer.Option(help="start from this bundle: a folder, or models:/NAME@ALIAS; else from the champion")
]
Cold = Annotated[bool, typer.Option("--cold", help="start training from nothing")]
BundlePath = Annotated[Path, typer.Argument(help="a bundle's folder", metavar="BUNDLE")]
RunFolder = Annotated[Path, typer.Argument(help="the --out folder of a run", metavar="OUT")]


def _say_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"sluice {version('sluice')}")
        raise typer.Exit


@app.callback()
def sluice(
    version: Annotated[bool, typer.Option("--version", callback=_say_version, is_eager=True, help="and exit")] = False,
) -> None:
    """Options of `sluice` itself."""


def reported(command: Callable[..., None]) -> Callable[..., None]:
    """Turns a SluiceError into its one sentence and its exit code."""

    @wraps(command)
    def wrapper(*args: Any, **kwargs: Any) -> None:
        from contracts.errors import SluiceError

        try:
            command(*args, **kwargs)
        except SluiceError as error:
            typer.echo(f"sluice: {error}", err=True)
            raise typer.Exit(error.exit_code) from None

    return wrapper


def console() -> Any:
    from rich.console import Console

    found = Console(stderr=True)
    return found if found.is_terminal else Console(stderr=True, width=120)


def show(result: dict[str, Any], as_json: bool) -> None:
    import json

    if as_json:
        typer.echo(json.dumps(result, default=str))
