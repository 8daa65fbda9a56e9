"""Commands of federated training: rounds on this machine, and a node of a deployment."""

from __future__ import annotations

from typing import Annotated

import typer

from sluice.commands.command import AsJson, ConfigPath, Data, Memory, Out, Until, command, console, opened, show


@command()
def federate(
    config: ConfigPath, out: Out = None, data: Data = None, until: Until = None, memory: Memory = None,
    deployed: Annotated[
        str, typer.Option(metavar="SETTING", help="no rounds: a bundle of what `flwr run .` trained in OUT/federated")
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Train where the data is: users of the log become clients of secure federated rounds; ends in a bundle.

    Example: sluice federate examples/movielens_100k.toml --data data/ml-100k --out out/federated
    """
    from sluice.report.tables import print_deployed, print_federated
    from sluice.run import jobs

    loaded, artifacts = opened(config, out, writes=True)
    if deployed:
        result = jobs.run_deployed(loaded, deployed, artifacts, console())
    else:
        result = jobs.run_federate(loaded, data, artifacts, console(), until, memory)
    if result.federated:
        print_federated(result.federated, console())
    for setting, led in (result.deployed or {}).items():
        print_deployed(setting, led, console())
    show(result, as_json)


@command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def supernode(context: typer.Context) -> None:
    """A node of a Flower deployment, quick on the short phases of a round; the options are those of flower-supernode.

    Example: sluice supernode --insecure --superlink 127.0.0.1:9092 --node-config partition-id=0
    """
    from federated.flower.supernode import run

    run(context.args)
