from __future__ import annotations

from pathlib import Path

import torch

from benchmarks.scale import world


def test_files_and_drawn_batches_have_the_same_shape(tmp_path: Path) -> None:
    layout = world.spec(1000)
    stored = next(world.write(tmp_path, layout, 300).batches(100))
    drawn = next(world.batches(layout, 100, 1))
    assert [tuple(t.shape) for t in (*stored.request, *stored.candidate, stored.label)] == [
        tuple(t.shape) for t in (*drawn.request, *drawn.candidate, drawn.label)]
    assert stored.request.ids.dtype == drawn.request.ids.dtype == torch.int32


def test_few_ids_are_most_of_the_rows() -> None:
    layout = world.spec(16_000)
    ids = next(world.batches(layout, 4000, 1)).request.ids
    assert 0.4 < float((ids < 100 + 2).float().mean()) < 0.6
    assert int(ids.max()) < layout.fields[0].size
