"""Which version is champion: the model registry, the watch over what it serves, and the way between two versions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sluice.commands.command import (
    AsJson,
    BundlePath,
    ConfigPath,
    Data,
    Out,
    Registry,
    RunFolder,
    command,
    opened,
    show,
)

Instant = Annotated[str | None, typer.Option(help="ISO 8601; UTC where no zone is given", metavar="TIME")]


@command()
def register(
    out: RunFolder,
    registry: Registry = None,
    alias: Annotated[str, typer.Option(help="what to point at it: challenger, shadow or a name of your own")] = (
        "challenger"
    ),
    commit: Annotated[str | None, typer.Option(help="of the code; found by git where it can be")] = None,
    as_json: AsJson = False,
) -> None:
    """Enter a run's bundle into the model registry, once, with signature and lineage.

    Example: sluice register out/demo
    """
    from sluice.release import registration

    found = registration.register(out, registry, alias, commit)
    typer.echo(f"{found.tags.bundle_version} is version {found.number} of {found.name}, {alias}")
    show(found, as_json)


@command()
def promote(
    out: RunFolder,
    registry: Registry = None,
    force: Annotated[bool, typer.Option(help="promote in spite of the gate's reasons")] = False,
    as_json: AsJson = False,
) -> None:
    """Make a run's registered bundle champion, unless the gate refuses (exit code 3).

    Example: sluice promote out/demo
    """
    from sluice.release import registration

    found = registration.promote(out, registry, force)
    typer.echo(f"version {found.number} {'is now champion' if found.promoted else 'was champion already'}")
    show(found, as_json)


@command()
def rollback(
    name: Annotated[str, typer.Argument(metavar="NAME", help="of the registered model")],
    registry: Registry = None,
    only: Annotated[str | None, typer.Option(help="roll back only while this bundle version is champion")] = None,
    as_json: AsJson = False,
) -> None:
    """Make the version that the champion replaced champion again.

    Example: sluice rollback marketplace --registry sqlite:///out/demo/mlflow.db
    """
    from sluice.release import registration

    found = registration.rollback(name, registry, only)
    typer.echo(f"champion of {name} is version {found.number}, {found.champion}")
    show(found, as_json)


@command()
def watch(
    config: ConfigPath,
    answers: Annotated[Path, typer.Option(help="the response log of `sluice serve --log-answers`")],
    out: Out = None,
    clicks: Annotated[Path | None, typer.Option(help="instead of the configured table of clicks")] = None,
    data: Data = None,
    since: Instant = None,
    until: Instant = None,
    registry: Registry = None,
    bundle: Annotated[str | None, typer.Option(help="watch this version, not the registry's champion")] = None,
    applied: Annotated[
        tuple[Path, Path] | None, typer.Option(metavar="FOLDER DELTA", help="watch the bundle in this folder, which"
                                               " this delta made; rolled back by reverting it")
    ] = None,
    roll_back: Annotated[bool, typer.Option("--roll-back", help="do so where it is wanted")] = False,
    as_json: AsJson = False,
) -> None:
    """Watch the champion, or an applied delta, by its answers and the clicks on them; exit code 4 when it should go
    back.

    Example: sluice watch examples/marketplace.toml --out out/demo --answers out/demo/answers --data out/demo/raw
    """
    from contracts.config.section import instant
    from contracts.errors import ConfigError, RollBackWanted
    from sluice.release import watch as release_watch
    from sluice.release.applied_delta import AppliedDelta

    if applied and bundle:
        raise ConfigError("--bundle and --applied both name what is watched: give one")
    loaded, artifacts = opened(config, out)
    watched = release_watch.Watched(
        artifacts.out, answers, clicks, data, instant(since), instant(until), registry, bundle,
        AppliedDelta(*applied) if applied else None)
    found = release_watch.watch(loaded, watched, roll_back)
    for line in release_watch.lines(found):
        typer.echo(line)
    show(found, as_json)
    if found.reasons:
        raise RollBackWanted(f"{found.bundle} should be rolled back: " + "; ".join(found.reasons))


@command()
def bill(
    config: ConfigPath,
    answers: Annotated[Path, typer.Option(help="the response log of `sluice serve --log-answers`")],
    since: Annotated[str, typer.Option(help="ISO 8601; UTC where no zone is given", metavar="TIME")],
    until: Annotated[str, typer.Option(help="ISO 8601; not included", metavar="TIME")],
    by: Annotated[str, typer.Option(help="column of the items' table that says who pays; or item")] = "item",
    clicks: Annotated[Path | None, typer.Option(help="instead of the configured table of clicks")] = None,
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Sum the prices of what was clicked, by who pays.

    Example: sluice bill examples/marketplace.toml --answers out/answers --data out/demo/raw --by advertiser_id
    --since 2026-11-21 --until 2026-11-22
    """
    from contracts.config.config import load
    from contracts.config.section import instant
    from contracts.errors import ConfigError
    from sluice.release import bill as release_bill

    first, last = instant(since), instant(until)
    if first is None or last is None or first >= last:
        raise ConfigError(f"the stretch to bill is empty: {since} is not before {until}")
    found = release_bill.bill(load(config), release_bill.Billed(answers, first, last, by, clicks, data))
    for line in release_bill.text(found):
        typer.echo(line)
    show(found, as_json)


@command("apply-delta")
def apply_delta(
    bundle: BundlePath,
    delta: Annotated[Path, typer.Argument(help="a folder that `sluice bundle --delta` has written", metavar="DELTA")],
    to: Annotated[
        Path | None, typer.Option(help="where the other bundle goes; in place of BUNDLE where none is given")
    ] = None,
    revert: Annotated[bool, typer.Option(help="from the new one back to the old one")] = False,
) -> None:
    """Make the bundle on the other side of a delta, bit for bit, or nothing.

    Example: sluice apply-delta out/served out/demo/delta
    """
    from contracts.bundle.bundle import read_manifest
    from contracts.bundle.delta import apply

    before = read_manifest(bundle)
    manifest = apply(bundle, delta, to or bundle, revert)
    typer.echo(f"{to or bundle} is {manifest.version}" + (" already" if manifest == before else ""))
