"""What a filter costs and finds, in the search and in the whole funnel, in process.

    sluice bench filters [--items 1000000] [--requests 300] [--json]

The world is that of `sluice bench funnel`, with a shop of a thousand, a country of two and a price an item. Times are
CPU milliseconds of the thread that works, medians over rounds in which every kind of request is asked in turn; ratios
are over requests without a filter. Recall is the share of the exact search's best items that the search finds, by
score. Prices are drawn between 0 and 1, so that a range passes as many items as it is wide.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict
from threadpoolctl import threadpool_limits

from benchmarks.serving.funnel import USERS, VALUES, clock, world
from serving.bundle.filter_column import FilterColumn
from serving.bundle.item_index import exact_search, search, with_bid_weight
from serving.bundle.item_set import ItemSet
from serving.bundle.loaded_bundle import LoadedBundle
from serving.bundle.number_column import NumberColumn
from serving.request.deadline import Deadline
from serving.request.query import RankQuery
from serving.stages.funnel import Funnel
from serving.stages.retrieval import RetrievalStage

ROUNDS, QUERIES, SHOPS = 5, 50, 1000
Asked = Mapping[str, object]
KINDS: dict[str, Asked] = {
    "none": {},
    "in, 1 of 1000": {"filters": {"shop": ("s7",)}},
    "range, 1 of 1000": {"ranges": {"price": (0.5, 0.501)}},
    "in and range, 1 of 1000": {"filters": {"country": ("here",)}, "ranges": {"price": (0.5, 0.502)}},
    "in, 1 of 100": {"filters": {"shop": tuple(f"s{shop}" for shop in range(10))}},
    "range, 1 of 10": {"ranges": {"price": (0.5, 0.6)}},
    "in, 1 of 2": {"filters": {"country": ("here",)}},
    "not in, 999 of 1000": {"excluded": {"shop": ("s7",)}},
}


class FilterFigures(BaseModel):
    """`recall` at `retrieve.two_tower`, mean over users and the worst; milliseconds of CPU of a whole request."""

    model_config = ConfigDict(frozen=True)

    kind: str
    passing: int
    recall: float
    recall_worst: float
    milliseconds: float
    ratio: float


def filtered_world(items: int) -> LoadedBundle:
    made, draw = world(items, "dnn"), np.random.default_rng(5)
    shops = np.sort(np.array([f"s{shop}" for shop in range(SHOPS)], dtype=np.bytes_))
    columns = {"shop": FilterColumn(draw.integers(0, SHOPS, items).astype(np.int32), shops),
               "country": FilterColumn(draw.integers(0, 2, items).astype(np.int32), np.array([b"here", b"there"]))}
    return replace(made, filters=columns, numbers={"price": NumberColumn(draw.random(items))})


def query(number: int, asked: Asked) -> RankQuery:
    return RankQuery(f"u{number % USERS}", 10, {"context0": f"v{number % VALUES}"}, **asked)  # type: ignore[arg-type]


def recalls(bundle: LoadedBundle, funnel: Funnel, allowed: ItemSet | None) -> list[float]:
    """Of QUERIES users."""
    k, rows = bundle.settings.retrieve.two_tower, None if allowed is None else allowed.rows()
    every = np.arange(len(bundle.index)) if rows is None else rows
    if not len(every):
        return [1.0]
    found = list[float]()
    for number in range(QUERIES):
        requester = funnel.stages.features.requester(query(number, {}))
        vector = funnel.stages.user_tower(requester.inputs)
        asked = with_bid_weight(vector[None], 1.0, bundle.index.vectors.shape[1])[0]
        limit = exact_search(bundle.index.vectors, asked, min(k, len(every)), every).scores[-1]
        scores = bundle.index.vectors[search(bundle.index, asked, k, allowed).rows] @ asked
        found.append(float(np.count_nonzero(scores >= limit - 1e-5) / min(k, len(every))))
    return found


def measure(bundle: LoadedBundle, requests: int) -> list[FilterFigures]:
    funnel, retrieval = Funnel(bundle), RetrievalStage(bundle)
    spent: dict[str, list[float]] = {kind: [] for kind in KINDS}
    with torch.inference_mode():
        for _ in range(ROUNDS):
            for kind, asked in KINDS.items():
                def ask(number: int, asked: Asked = asked) -> object:
                    return funnel.rank(query(number, asked), Deadline(None))

                spent[kind].append(statistics.median(clock(ask, max(requests // ROUNDS, 1), time.thread_time)))
        found = []
        for kind, asked in KINDS.items():
            allowed = retrieval.allowed(query(0, asked))
            shares = recalls(bundle, funnel, allowed)
            ratio = statistics.median(a / b for a, b in zip(spent[kind], spent["none"], strict=True))
            found.append(FilterFigures(
                kind=kind, passing=len(bundle.index) if allowed is None else allowed.count,
                recall=statistics.mean(shares), recall_worst=min(shares),
                milliseconds=statistics.median(spent[kind]), ratio=ratio))
    return found


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument("--requests", type=int, default=300, help="of each kind")
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args(argv)
    torch.set_num_threads(1)
    with threadpool_limits(1):
        found = measure(filtered_world(chosen.items), chosen.requests)
    for one in found:
        print(f"{one.kind:24} {one.passing:9,} pass   recall {one.recall:.3f} (worst {one.recall_worst:.3f})   "
              f"{one.milliseconds:6.2f} ms   {one.ratio:5.2f} times none")
    if chosen.json:
        print(json.dumps({"items": chosen.items, "filters": [one.model_dump() for one in found]}))


if __name__ == "__main__":
    main()
