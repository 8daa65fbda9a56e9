from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from contracts.errors import DataError
from contracts.features.pair_graph import Relation
from models.pair_rates.graph import PairGraph
from tests.models.stored_graph import manifest


def write(folder, columns, order):
    (folder / "edges").mkdir(parents=True)
    manifest({"a": 4, "b": 5}, [Relation("a", "b", "pair")]).write(folder)
    for number, part in enumerate(np.array_split(order, 2)):
        pq.write_table(pa.table({name: values[part] for name, values in columns.items()}),
                       folder / "edges" / f"{number}.parquet")


@pytest.fixture
def columns():
    return {
        "relation": np.zeros(4, np.int32), "left": np.array([2, 2, 3, 3], np.int32),
        "right": np.array([2, 4, 1, 3], np.int32), "impressions": np.array([5, 1, 2, 9]),
        "clicks": np.array([1, 0, 2, 3]), "exposure": np.array([4.0, 1.0, 1.5, 8.0]), "rate": np.zeros(4),
    }


def test_the_order_of_the_stored_edges_changes_nothing(tmp_path, columns):
    write(tmp_path / "plain", columns, np.arange(4))
    write(tmp_path / "mixed", columns, np.array([3, 1, 0, 2]))
    plain, mixed = PairGraph.read(tmp_path / "plain"), PairGraph.read(tmp_path / "mixed")
    assert all(torch.equal(*parts) for parts in zip(plain.edges, mixed.edges, strict=True))
    assert plain.edges.left.tolist() == [2, 2, 3, 3]
    assert plain.edges.right.tolist() == [4 + 2, 4 + 4, 4 + 1, 4 + 3]
    assert plain.priors.tolist() == pytest.approx([(6 + 0.5) / (14.5 + 1)])


def test_a_missing_graph_says_what_to_run(tmp_path):
    with pytest.raises(DataError, match="sluice pretrain"):
        PairGraph.read(tmp_path)


def test_incoming_lists_hold_each_edge_once_each_way(pair_graph):
    for slot, incoming in zip(pair_graph.slots, pair_graph.incoming, strict=True):
        for one in incoming:
            own = pair_graph.edges.right if one.from_left else pair_graph.edges.left
            for value in range(pair_graph.slots[slot]):
                listed = one.edges[one.ends[value] : one.ends[value + 1]].long()
                expected = (own == value + pair_graph.starts[slot]) & (pair_graph.edges.relation == one.relation)
                assert listed.tolist() == torch.nonzero(expected).squeeze(1).tolist()


def test_values_of_no_edge_count_as_unseen(pair_graph):
    unseen = {(slot, row - start) for slot, start in pair_graph.starts.items()
              for row in range(start, start + pair_graph.slots[slot]) if not pair_graph.seen[row]}
    assert unseen == {(slot, number) for slot in pair_graph.slots for number in (0, 1)}


def test_without_leaves_out_exactly_these_edges(pair_graph):
    gone = torch.tensor([0, 3, 5])
    left = pair_graph.without(gone)
    kept = [number for number in range(len(pair_graph.edges.relation)) if number not in gone.tolist()]
    assert torch.equal(left.edges.clicks, pair_graph.edges.clicks[kept])
