"""What all commands share: the application, options of one meaning, errors as one sentence, JSON on the last line."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import click
import typer
from typer.core import TyperCommand
from typer.models import ArgumentInfo

if TYPE_CHECKING:
    from pydantic import BaseModel
    from rich.console import Console

    from contracts.artifacts import Artifacts
    from contracts.config.config import Config

SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
ADDRESS = re.compile(  # HOST:PORT, or a name of gRPC's
    r"(dns|unix|unix-abstract|vsock|ipv4|ipv6|xds):.+|([^\s/:]+|\[[^\s/\]]+\]):(?P<port>[0-9]{1,9})")
app = typer.Typer(
    name="sluice",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    suggest_commands=False,  # click does
    help="A multi-stage ranking platform: raw logs in, a gRPC server out.\n\n"
    "Exit codes: 0 done, 1 failed, 2 wrong use, 3 refused by a gate, 4 the watch wants a roll-back.",
)


def unfit(value: object, is_path: bool = False) -> str:
    """What is wrong with it, "" for nothing: an empty path would be the folder that one happens to be in, and what is
    no number, or without end, lies within every bound."""
    if is_path and value == "":
        return "is empty; give a path, . for the folder that you are in, or leave it out"
    if isinstance(value, float) and not math.isfinite(value):
        return f"{value} is no number to count with; give a finite one"
    return ""


def local_folder(given: str | Path) -> Path:
    """A folder on this machine's file systems. Raises BadParameter on an address such as s3a://bucket/x."""
    if SCHEME.match(str(given)):
        raise typer.BadParameter(
            f"{given} is the address of an object store, and results are put in place by renames, which it lacks: give "
            "a folder of this machine, or of a file system that the cluster shares, and copy the results afterwards"
        )
    if problem := unfit(given, is_path=True):
        raise typer.BadParameter(problem)
    return Path(given)


ConfigPath = Annotated[Path, typer.Argument(help="the run's TOML file", metavar="CONFIG")]
Out = Annotated[
    Path | None,
    typer.Option(help="where everything is written; out/NAME of the configuration unless given", parser=local_folder,
                 metavar="PATH"),
]
Data = Annotated[
    str | None,
    typer.Option(help="the folder, or address such as s3a://bucket/logs, that {data} stands for in the configuration",
                 metavar="PATH"),
]

def server_address(value: str) -> str:
    """One or several with commas between. gRPC would take another port where none is told, or one that is none. Raises
    BadParameter."""
    for one in value.split(","):
        told = ADDRESS.fullmatch(one.strip())
        if told is None or not 0 < int(told["port"] or 1) <= 65_535:
            raise typer.BadParameter(f"{one.strip()!r} is no HOST:PORT, such as 127.0.0.1:50051; a port is 1 to 65535")
    return value


def utf8(given: str | list[str] | None) -> str | list[str] | None:
    """A text or several, as they were given: bytes of a command line that are no UTF-8 cannot be sent. Raises
    BadParameter."""
    from contracts.shown import shown

    for one in [given] if isinstance(given, str) else given or []:
        try:
            one.encode()
        except UnicodeEncodeError:
            raise typer.BadParameter(f"{shown(one)} is not UTF-8; set the terminal to UTF-8 and give it anew") from None
    return given


Target = Annotated[str, typer.Option(help="HOST:PORT", callback=server_address)]
Tls = Annotated[bool, typer.Option("--tls", help="TLS, of an authority that gRPC trusts")]
ServerAuthority = Annotated[
    Path | None, typer.Option(envvar="SLUICE_TLS_CA", help="TLS: the authority of the server's certificate, in PEM")
]
CallerCertificate = Annotated[
    Path | None, typer.Option(envvar="SLUICE_CALLER_CERTIFICATE", help="mutual TLS: the caller's, in PEM")
]
CallerKey = Annotated[Path | None, typer.Option(envvar="SLUICE_CALLER_KEY", help="of that certificate")]
TokenFile = Annotated[
    Path | None, typer.Option(envvar="SLUICE_TOKEN_FILE", help="holds the caller's token; else SLUICE_TOKEN")
]
Seed = Annotated[int | None, typer.Option(help="instead of the configuration's seed")]
Until = Annotated[str | None, typer.Option(help="read the log as it stood when this day (YYYY-MM-DD) ended")]
Memory = Annotated[
    Path | None, typer.Option(help="where clients keep what they answered and spent, whatever the run or day")
]
AsJson = Annotated[bool, typer.Option("--json", help="print one JSON object as the last line")]
Registry = Annotated[
    str | None, typer.Option(help="MLflow's address; else MLFLOW_TRACKING_URI, else the data base in the run's folder")
]
Warm = Annotated[
    str | None, typer.Option(help="start from this bundle: a folder, or models:/NAME@ALIAS; else from the champion")
]
Cold = Annotated[bool, typer.Option("--cold", help="start training from nothing")]
Resume = Annotated[bool, typer.Option(
    help="take up the checkpoint of what was stopped in the middle; one of another run is refused")]
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


class Command(TyperCommand):
    """A command whose --help is plain text with the help of its arguments.

    typer escapes [required] for rich even where rich does not print it, and click 8.5 drops what typer says about an
    argument.
    """

    def __init__(self, name: str | None, *, callback: Callable[..., None], **settings: Any) -> None:
        super().__init__(name, callback=callback, **settings)
        hints = get_type_hints(callback, include_extras=True)
        for parameter in self.params:
            for told in getattr(hints.get(parameter.name or ""), "__metadata__", ()):
                if isinstance(told, ArgumentInfo) and isinstance(parameter, click.Argument):
                    parameter.help = told.help

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Raises BadParameter for a value that no command takes, whatever its own bounds."""
        rest = super().parse_args(ctx, args)
        for parameter in self.params:
            problem = unfit(ctx.params.get(parameter.name or ""), isinstance(parameter.type, click.Path))
            if problem:
                raise click.BadParameter(problem, ctx=ctx, param=parameter)
        return rest

    def format_arguments(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """typer has written them beside the options."""

    def get_help(self, ctx: click.Context) -> str:
        return super().get_help(ctx).replace("\\[", "[")


def command(name: str | None = None, **settings: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Makes a function a command of `sluice`; its name is the function's, blanks as "-", unless given.

    A SluiceError becomes its one sentence and its exit code, as does what a file system refuses; of several processes
    one speaks.
    """

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        @wraps(function)
        def reported(*args: Any, **kwargs: Any) -> None:
            from contracts.errors import SluiceError
            from sluice.out_folder import file_trouble
            from sluice.run import final_error

            try:
                function(*args, **kwargs)
            except SluiceError as error:
                if final_error.note(error, error.exit_code):
                    typer.echo(f"sluice: {error}", err=True)
                raise typer.Exit(error.exit_code) from None
            except Exception as error:
                told = file_trouble.sentence(error, kwargs.get("out"))
                if final_error.note(error, getattr(error, "exit_code", 1)):
                    if told is None:
                        raise
                    typer.echo(f"sluice: {told}", err=True)
                raise typer.Exit(1) from None

        return app.command(name, cls=Command, **settings)(reported)

    return decorate


def opened(config: Path, out: Path | None, writes: bool = False) -> tuple[Config, Artifacts]:
    """The configuration, and the output folder: out/NAME of the configuration where none is given. A command that
    `writes` there is the only one until it ends."""
    from contracts.artifacts import Artifacts
    from contracts.config.config import load

    loaded = load(config)
    artifacts = Artifacts(out or Path("out") / loaded.name)
    if writes:
        hold(artifacts.out)
    return loaded, artifacts


def hold(out: Path) -> None:
    """No other command writes to the folder until this one ends; of torchrun's processes the first speaks for all."""
    from sluice.out_folder.one_writer import one_writer
    from sluice.run.one_process import is_first

    context = click.get_current_context()
    if is_first():
        context.with_resource(one_writer(out, context.info_name or ""))


def console() -> Console:
    from rich.console import Console

    found = Console(stderr=True)
    return found if found.is_terminal else Console(stderr=True, width=120)


def show(result: BaseModel | Mapping[str, object], as_json: bool) -> None:
    import json

    if as_json:
        plain = result if isinstance(result, Mapping) else result.model_dump(mode="json", exclude_none=True)
        typer.echo(json.dumps(plain, default=str))
