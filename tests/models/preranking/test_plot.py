from __future__ import annotations

from pathlib import Path

from models.preranking import plot as prerank_plot

POINT = {"recall_error": 0.01, "fields_kept": 3, "chosen": False}


def test_the_frontier_is_drawn(tmp_path: Path) -> None:
    frontier = [POINT | {"us_per_1000": 900.0, "recall": 0.99},
                POINT | {"us_per_1000": 300.0, "recall": 0.9, "chosen": True}]
    compared = {name: {"us_per_1000": 100.0, "recall": 0.7} for name in ("fscd", "dot_product", "full_ranker")}
    prerank_plot.write(tmp_path / "frontier.png", {"frontier": frontier, **compared})
    assert (tmp_path / "frontier.png").read_bytes().startswith(b"\x89PNG")
