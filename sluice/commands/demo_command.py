"""The demo: a simulated marketplace from log to answers, or an hour after its log."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from contracts.errors import ConfigError
from sluice.commands.command import AsJson, command, console, hold, local_folder, show


class Preset(StrEnum):
    """Of the simulated marketplace, as in sluice/demo/demo.py."""

    STANDARD = "standard"
    TASTES = "tastes"


@command()
def demo(
    out: Annotated[
        Path, typer.Option(help="where everything is written", parser=local_folder, metavar="PATH")
    ] = Path("out/demo"),
    events: Annotated[int | None, typer.Option(min=20_000, help="impressions to simulate")] = None,
    keep_serving: Annotated[bool, typer.Option(help="leave the server running")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="the same path on 40,000 events, for a first look;"
                                             " with --fresh a quarter of the visits")] = False,
    preset: Annotated[Preset, typer.Option(help="standard: crosses of fields carry the clicks; tastes: what each user"
                                           " likes for itself, and that changes")] = Preset.STANDARD,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="instead: an hour after the log, with and without changes of items and"
                           " events sent to the server; of the demo in --out, or of a quick one made there")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Everything on a simulated marketplace: log, features, models, bundle, live server, requests, report.

    Example: sluice demo --events 100000 --out out/small
    """
    if fresh:
        from sluice.fresh_demo.fresh_demo import run_fresh
        from sluice.fresh_demo.hour import QUICK_HOUR

        if keep_serving:
            raise ConfigError("--fresh stops each of its servers when its hour is over; leave --keep-serving out")
        if preset is not Preset.STANDARD:
            raise ConfigError("--fresh asks the demo in --out as it was made: make that by `sluice demo --preset "
                              f"{preset.value}`, then leave --preset out")
        hold(out)
        show(run_fresh(out, events, console(), QUICK_HOUR if quick else None), as_json)
        return
    from sluice.demo.demo import require_sound, run_demo

    hold(out)
    found = run_demo(out, events, keep_serving, console(), quick, preset.value)
    show(found, as_json)
    require_sound(found.serving, found.parity)
