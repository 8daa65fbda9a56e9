"""A real server under open-loop load: one caller, capacity, latency along it, and goodput beyond it.

    sluice bench load [--items 1000000] [--ranker dnn] [--workers 2] [--seconds 8] [--json]

The world is that of `sluice bench funnel` (1,000 retrieved, 200 ranked, 10 shown, 40 fields, an auction), written as a
bundle and served by `sluice serve`. Callers are a process of their own on the same machine (benchmarks/serving/
open_loop.py). Capacity is what a closed loop of eight callers gets; goodput counts answers within a deadline of 25 ms,
as a share of capacity. The generator's own share of the machine stands beside each figure, and the server's, its memory
and its queue; beyond capacity, what answers, refusals and the generator take of the cores that they share, and how many
of the answers are degraded, as `serve.overload` has it. One caller is a light one, and what gRPC adds is its time less
that of the same query in process; beside it stand the product's own client, and calls that do nothing
(benchmarks/serving/empty_calls.py), and bare servers that do the floor's work alone. Where HAProxy is installed the
same is asked of a server with `--balancer`, one caller and beyond capacity, as a share of what callers get who come to
its workers directly: each stretch lies between two measurements of the capacity that it is compared with. The last
line's goodput is that of the most workers, as its capacity is, without the balancer. h2load is
asked besides, where it is installed (benchmarks/serving/witness.py). The funnel in process, and its floor, are those of
`sluice bench funnel`; changes of bundles those of `sluice bench swaps`. With --json the last line is `load.{...}`.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch
from threadpoolctl import threadpool_limits

from benchmarks.serving.empty_calls import bare_server, floor_p50, funnel_of, one_caller
from benchmarks.serving.funnel import USERS, VALUES, beside_floor, world
from benchmarks.serving.open_loop import LoadFigures, offered, request
from benchmarks.serving.process_figures import cpu_seconds, resident_megabytes
from benchmarks.serving.queue_watch import QueueWatch
from benchmarks.serving.swaps import measure as measure_swaps
from benchmarks.serving.synthetic_bundle import publish
from benchmarks.serving.witness import witness
from contracts.errors import ConfigError, SluiceError
from models.networks import registry
from serving.balancer.balancer import program
from serving.bundle.loaded_bundle import LoadedBundle
from serving.native.native_library import library
from sluice.demo.server_process import ServerProcess

Inside = Callable[[int], object]
CALLERS, SHARES = 8, (0.25, 0.5, 0.75, 0.9)
OVERLOAD = (1.25, 2.0, 2.8, 5.0)
SHORT = 0.025  # seconds of a call's deadline under overload
STEADY_RATE, WITNESSED = 300.0, 0.5  # requests a second; share of capacity
SWAP_SHARE, SWAP_CONNECTION_SECONDS = 0.3, 5.0  # of capacity offered while bundles are changed


def in_process(bundle: LoadedBundle, times: int) -> dict[str, Any]:
    """Milliseconds of the funnel without and with reasons, of its floor, and both ratios with their spread."""
    found = beside_floor(bundle, times)
    return {"funnel_ms": statistics.median(found.plain), "explained_ms": statistics.median(found.explained),
            "floor_ms": statistics.median(found.floor), "funnel_over_floor": found.plain_ratio.median,
            "explained_over_floor": found.explained_ratio.median,
            "spread": {"funnel": found.plain_ratio[1:], "explained": found.explained_ratio[1:]}}


def capacity(server: ServerProcess, seconds: float, workers: str = "") -> tuple[float, float]:
    """Requests a second that eight callers get who ask again at once, and what each costs the server, ms of a core.
    Callers of a server behind a balancer may come to its `workers` themselves."""
    before = cpu_seconds(server.process.pid)
    found = offered(workers or server.target, 0.0, seconds, 1.0, callers=CALLERS)
    return found.answered, 1000 * (cpu_seconds(server.process.pid) - before) / max(found.requests, 1)


def beyond_capacity(server: ServerProcess, seconds: float, workers: str = "") -> dict[str, dict[str, Any]]:
    """A stretch for each of OVERLOAD, between two measurements of the capacity that it is a share of, of which the mean
    counts: a machine that others work on is not as fast as it was a minute ago."""
    found, before = {}, capacity(server, seconds / 2, workers)
    for share in OVERLOAD:
        one = stretch(server, share * before[0], seconds, SHORT)
        after = capacity(server, seconds / 2, workers)
        most, answer_ms = (statistics.mean(both) for both in zip(before, after, strict=True))
        found[str(share)], before = {**one, "capacity_per_second": most, "answer_core_ms": answer_ms}, after
    return found


def floor_server(folder: Path, workers: int, seconds: float, times: int) -> dict[str, float]:
    """What as many bare servers as there are workers get done, which do the floor's work alone: requests a second that
    the same callers get, dealt evenly, and one caller's median."""
    with ExitStack() as servers, ThreadPoolExecutor(workers) as generators:
        targets = [servers.enter_context(bare_server(folder)) for _ in range(workers)]
        alone = floor_p50(targets[0], times)
        found = generators.map(lambda one: offered(one, 0.0, seconds, 1.0, callers=max(CALLERS // workers, 1)), targets)
        return {"capacity_per_second": sum(one.answered for one in found), "p50_ms": alone}


def stretch(server: ServerProcess, rate: float, seconds: float, deadline: float) -> dict[str, Any]:
    """The generator's figures, the cores that the server has used meanwhile, its queue, and its memory after it."""
    before = cpu_seconds(server.process.pid)
    with QueueWatch(server.target) as queue:
        figures = offered(server.target, rate, seconds, deadline).model_dump()
    return {**figures, "server_cores": (cpu_seconds(server.process.pid) - before) / seconds,
            "waiting": queue.waiting, "queue_ms": queue.milliseconds,
            "megabytes": resident_megabytes(server.process.pid)}


def degraded_share(one: dict[str, Any]) -> float:
    """Of a stretch's answers, 0 where there are none."""
    return float(one["degraded"] / max(one["codes"].get("OK", 0), 1))


def where_cores_go(one: dict[str, Any]) -> dict[str, float]:
    """Of an overloaded stretch, cores: what its answers would take at capacity, what else the server has used, nearly
    all of it refusals, and what the generator has."""
    answers = one["answered"] * one["answer_core_ms"] / 1000
    return {"answers": answers, "refusals": one["server_cores"] - answers, "generator": one["generator_cores"]}


def swapped(folder: Path, swaps: int, rate: float, workers: int) -> dict[str, Any]:
    """Failed requests and what all ended in, p99 during changes over that between them, and p99 in milliseconds; none
    of them, and why, where a change did not end."""
    try:
        found = measure_swaps(folder, swaps, rate, SWAP_CONNECTION_SECONDS, SWAP_CONNECTION_SECONDS, workers)
    except SluiceError as error:
        return {"failed": None, "codes": {}, "p99_ratio": None, "p99_ms": None, "error": str(error)}
    return {"failed": found["failed"], "codes": found["codes"], "p99_ratio": found["p99_ratio"],
            "p99_ms": found["during"]["p99"]}


def swaps_line(swaps: int, swap: dict[str, Any]) -> str:
    if "error" in swap:
        return f"{swaps} changes of bundles were not measured: {swap['error']}"
    return (f"{swaps} changes of bundles: {swap['failed']} failed {swap['codes']}, p99 {swap['p99_ms']:.1f} ms, "
            f"{swap['p99_ratio']:.2f} of steady")


def served(folder: Path, log: Path, workers: int, seconds: float, times: int, funnel: Inside) -> dict[str, Any]:
    """All figures of a server with so many workers; `funnel` is that of this process."""
    server = ServerProcess(folder, log, options=("--workers", str(workers)))
    try:
        alone, (most, answer_ms) = one_caller(server.target, times, funnel), capacity(server, seconds)
        along = {str(share): stretch(server, share * most, seconds, 1.0) for share in SHARES}
        beyond = beyond_capacity(server, seconds)
        steady = stretch(server, STEADY_RATE, seconds, 1.0)
        asked = request(1, USERS, VALUES, False, 0)
        seen = witness(server.target, asked, WITNESSED * most, seconds)
        memory = resident_megabytes(server.process.pid)
    finally:
        server.stop()
    floor = floor_server(folder, workers, seconds, times)
    return {"workers": workers, "floor": floor, "one_caller": alone, "capacity_per_second": most,
            "answer_core_ms": answer_ms,
            "cores_beyond": {share: where_cores_go(one) for share, one in beyond.items()},
            "at_300": steady, "along": along,
            "beyond": beyond, "witness": None if seen is None else seen.model_dump(), **in_time(beyond),
            "balanced": balanced(folder, log, workers, seconds, times, funnel), "megabytes": memory}


def balanced(
    folder: Path, log: Path, workers: int, seconds: float, times: int, funnel: Inside,
) -> dict[str, Any] | None:
    """One caller, 300 a second, and beyond the capacity that its workers have without it, of a server with a balancer;
    None without HAProxy."""
    try:
        program()
    except ConfigError:
        return None
    server = ServerProcess(folder, log, options=("--workers", str(workers), "--balancer"))
    try:
        alone = one_caller(server.target, times, funnel)
        beyond = beyond_capacity(server, seconds, workers_address(log.read_text()))
        steady = stretch(server, STEADY_RATE, seconds, 1.0)
    finally:
        server.stop()
    return {"one_caller": alone, "at_300": steady, "beyond": beyond, **in_time(beyond)}


def workers_address(log: str) -> str:
    """HOST:PORT of the workers of a server with a balancer, as its log has it."""
    return re.findall(r"to the balancer on (\S+:\d+)$", log, re.MULTILINE)[-1]


def in_time(beyond: dict[str, dict[str, Any]]) -> dict[str, dict[str, float]]:
    """By times of capacity: answers within the deadline as a share of it, and how many are degraded."""
    return {"goodput": {share: one["answered"] / one["capacity_per_second"] for share, one in beyond.items()},
            "degraded": {share: degraded_share(one) for share, one in beyond.items()}}


def row(label: str, figures: dict[str, Any]) -> str:
    one = LoadFigures.model_validate(figures)
    codes = ", ".join(f"{name} {count}" for name, count in sorted(one.codes.items()))
    return (f"{label:<16}{one.rate:8.0f}/s {one.answered:8.1f} answered/s  p50 {one.p50_ms:7.2f}  "
            f"p95 {one.p95_ms:7.2f}  p99 {one.p99_ms:7.2f} ms  degraded {one.degraded}  {codes}  "
            f"(sent late p99 {one.sent_late_ms:.1f} ms; cores: server {figures['server_cores']:.2f}, generator "
            f"{one.generator_cores:.2f}; {figures['waiting']} waited, {figures['queue_ms']:.0f} ms; "
            f"{figures['megabytes']} MB)\n{'':<16}up to ms: "
            + ", ".join(f"{edge} {count}" for edge, count in one.histogram.items()))


def show(found: dict[str, Any]) -> None:
    alone = found["one_caller"]
    print(f"{found['workers']} worker(s): one caller p50 {alone['p50_ms']:.2f} p99 {alone['p99_ms']:.2f} ms, of which "
          f"{alone['adds_ms']:.2f} more than in process, {alone['beyond_ms']:.2f} beyond its stages (by the product's "
          f"client p50 {alone['client_p50_ms']:.2f}); an "
          f"empty call {alone['empty_ms']:.2f}, of a bare server {alone['bare_empty_ms']:.2f}; capacity "
          f"{found['capacity_per_second']:.0f}/s, {found['answer_core_ms']:.2f} ms of a core each; "
          f"{found['megabytes']} MB resident")
    floor = found["floor"]
    print(f"  bare servers that do the floor's work alone: one caller p50 {floor['p50_ms']:.2f} ms, capacity "
          f"{floor['capacity_per_second']:.0f}/s")
    for kind in ("along", "beyond"):
        for share, one in found[kind].items():
            print(row(f"  {share} capacity", one))
    for share, cores in found["cores_beyond"].items():
        print(f"  at {share} times capacity {found['goodput'][share]:.2f} of it are answered in time, "
              f"{found['degraded'][share]:.0%} of these degraded; cores: "
              + ", ".join(f"{name} {used:.2f}" for name, used in cores.items()))
    if (before := found["balanced"]) is not None:
        print(f"  behind a balancer: one caller p50 {before['one_caller']['p50_ms']:.2f} p99 "
              f"{before['one_caller']['p99_ms']:.2f} ms, an empty call {before['one_caller']['empty_ms']:.2f}")
        for share, one in before["beyond"].items():
            print(row(f"  {share} capacity", one))
            print(f"  at {share} times capacity {before['goodput'][share]:.2f} of it are answered in time, "
                  f"{before['degraded'][share]:.0%} of these degraded")
        print(row("  300/s", before["at_300"]))
    print(row("  300/s", found["at_300"]))
    if (seen := found["witness"]) is None:
        print("  no witness: h2load is not installed (Debian: nghttp2-client)")
    else:
        print(f"  h2load at {WITNESSED} of capacity: {seen['requests']} requests, {seen['failed']} failed, p50 "
              f"{seen['p50_ms']:.2f}  p95 {seen['p95_ms']:.2f}  p99 {seen['p99_ms']:.2f} ms from when they were sent")


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument("--ranker", default="dnn", choices=registry.names())
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--seconds", type=float, default=8.0, help="of every stretch")
    parser.add_argument("--requests", type=int, default=400, help="one after the other")
    parser.add_argument("--swaps", type=int, default=4, help="changes of bundles, under load")
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args(argv)
    torch.set_num_threads(1)
    threadpool_limits(1)
    with tempfile.TemporaryDirectory() as place:
        made = world(chosen.items, chosen.ranker)
        inside = in_process(made, chosen.requests)
        print(f"in process, CPU: {inside['funnel_ms']:.2f} ms, with reasons {inside['explained_ms']:.2f}, floor "
              f"{inside['floor_ms']:.2f}; ratios in rounds {inside['spread']}", flush=True)
        folder = publish(made, Path(place), VALUES)
        del made
        funnel = funnel_of(folder)
        found = []
        for workers in chosen.workers:
            found.append(served(folder, Path(place) / "server.log", workers, chosen.seconds, chosen.requests, funnel))
            show(found[-1])
        swap = swapped(folder, chosen.swaps, SWAP_SHARE * found[-1]["capacity_per_second"], chosen.workers[-1])
    print(swaps_line(chosen.swaps, swap))
    codes = swap.pop("codes")
    if chosen.json:
        print(json.dumps({"load": summary(inside, found, swap), "date": datetime.now(UTC).date().isoformat(),
                          "items": chosen.items, "ranker": chosen.ranker, "in_process": inside, "runs": found,
                          "swap_codes": codes}))


def summary(inside: dict[str, Any], found: list[dict[str, Any]], swap: dict[str, Any]) -> dict[str, Any]:
    """One caller of the first run; capacity and its floor, 300 a second and overload of the last, whose number of
    workers is what as many cores are served by. Goodput, and the share of it that is degraded, of every number of
    workers, with and without a balancer; that of the last run is without one, as a server is unless told otherwise."""
    first, last = found[0], found[-1]
    alone = first["one_caller"]
    beyond = {f"{one['workers']}{' balanced' if kind is not one else ''}": {
        share: {"goodput": kind["goodput"][share], "degraded": kind["degraded"][share]} for share in kind["goodput"]}
        for one in found for kind in (one, one["balanced"]) if kind is not None}
    return {
        "funnel_over_floor": inside["funnel_over_floor"], "explained_over_floor": inside["explained_over_floor"],
        "grpc_adds_ms": alone["adds_ms"], "grpc_beyond_stages_ms": alone["beyond_ms"],
        "grpc_adds_by_client_ms": alone["client_p50_ms"] - inside["funnel_ms"],
        "empty_call_ms": alone["empty_ms"], "bare_empty_call_ms": alone["bare_empty_ms"],
        "one_caller": {"p50_ms": alone["p50_ms"], "p99_ms": alone["p99_ms"]},
        "capacity_per_second": last["capacity_per_second"], "p99_at_300_ms": last["at_300"]["p99_ms"],
        "failed_at_300": last["at_300"]["requests"] - last["at_300"]["codes"].get("OK", 0),
        "goodput_at_2_8x": last["goodput"]["2.8"], "goodput_at_5x": last["goodput"]["5.0"],
        "server": "native" if library() else "grpc.aio",
        "cores_at_2_8x": last["cores_beyond"]["2.8"], "cores_at_5x": last["cores_beyond"]["5.0"], "swap": swap,
        "goodput": beyond,
        "floor": {"capacity_per_second": last["floor"]["capacity_per_second"], "p50_ms": first["floor"]["p50_ms"]},
    }


if __name__ == "__main__":
    main()
