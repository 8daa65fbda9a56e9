"""A co-occurrence graph on disk, as Spark leaves it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import torch

from contracts.features.pair_graph import EDGES, GraphManifest, StoredTable
from models.pair_rates.graph import PairGraph


def store(graph: PairGraph, folder: Path, rows: int = 4880, clicks: int = 800) -> GraphManifest:
    """Writes the graph's edges with ids local to their slots, and returns the manifest that it writes beside them."""
    relation = graph.edges.relation.long()
    starts = torch.tensor([[graph.starts[one[side]] for one in graph.relations] for side in (0, 1)])
    local = {"left": graph.edges.left - starts[0][relation], "right": graph.edges.right - starts[1][relation]}
    (folder / EDGES).mkdir(parents=True)
    columns = {name: part.numpy() for name, part in (graph.edges._asdict() | local).items()}
    pq.write_table(pa.table(columns), folder / EDGES / "part.parquet")
    made = manifest(graph.slots, graph.relations, rows, clicks)
    made.write(folder)
    return made


def manifest(slots, relations, rows: int = 4880, clicks: int = 800) -> GraphManifest:
    table = StoredTable(rows=rows, content_hash="")
    return GraphManifest(slots=slots, relations=tuple(relations), smoothing=50.0, rows=rows, clicks=clicks,
                         rate=clicks / rows, edges=table, nodes=table)
