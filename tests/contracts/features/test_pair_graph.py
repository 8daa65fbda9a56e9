from __future__ import annotations

import json
from pathlib import Path

import pytest

from contracts.errors import DataError
from contracts.features.pair_graph import MANIFEST, GraphManifest, Relation, StoredTable

MADE = GraphManifest(
    slots={"city": 6, "brand": 5}, relations=(Relation("city", "brand", "pair"), Relation("city", "region", "link")),
    smoothing=50.0, rows=10, clicks=2, rate=0.2, edges=StoredTable(rows=7, content_hash="e"),
    nodes=StoredTable(rows=4, content_hash="n"),
)


def test_a_manifest_comes_back_as_it_was_written_and_names_the_parts_of_a_relation(tmp_path: Path) -> None:
    MADE.write(tmp_path / "graph")
    assert GraphManifest.read(tmp_path / "graph") == MADE
    stored = json.loads((tmp_path / "graph" / MANIFEST).read_text())
    assert stored["relations"][1] == {"left": "city", "right": "region", "kind": "link"}
    assert list(stored["slots"]) == ["city", "brand"]


def test_without_a_graph_the_message_says_what_to_run(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no co-occurrence graph in .*; run `sluice pretrain`"):
        GraphManifest.read(tmp_path)


@pytest.mark.parametrize("text", ["{", "[]", '{"slots": {}}'])
def test_another_file_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / MANIFEST).write_text(text)
    with pytest.raises(DataError, match="is no graph's manifest"):
        GraphManifest.read(tmp_path)
