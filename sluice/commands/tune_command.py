"""`sluice tune`: settings searched within a budget of time."""

from __future__ import annotations

from typing import Annotated

import typer

from contracts import duration
from sluice.commands.command import AsJson, ConfigPath, Out, Seed, command, console, opened, show


def _seconds(text: str) -> int:
    try:
        return duration.seconds(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


Budget = Annotated[int, typer.Option(parser=_seconds, metavar="TIME", help="how long: 90s, 30m, 6h")]


@command()
def tune(
    config: ConfigPath,
    out: Out = None,
    budget: Budget = "30m",  # type: ignore[assignment]
    trials: Annotated[int | None, typer.Option(help="at most so many, those of earlier calls included")] = None,
    model: Annotated[list[str] | None, typer.Option(help="instead of those configured; may be repeated")] = None,
    processes: Annotated[int | None, typer.Option(help="that train at once; one per core unless given")] = None,
    seed: Seed = None,
    as_json: AsJson = False,
) -> None:
    """Search settings of the rankers on the validation window; writes OUT/tuning/tuned.toml, which every command takes.

    The same command again goes on where the last one stopped. The test window is not read.

    Example: sluice tune examples/movielens_100k.toml --out out/movielens --budget 30m --model dcn_v2
    """
    from sluice.report.tables import print_tuning
    from sluice.run import jobs

    loaded, artifacts = opened(config, out)
    found = jobs.run_tune(config, loaded, artifacts, console(), budget=budget, trials=trials, models=model or (),
                          processes=processes, seed=seed)
    print_tuning(found, console())
    typer.echo(found.written)
    show(found, as_json)
