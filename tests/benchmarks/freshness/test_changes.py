from __future__ import annotations

from collections import Counter

from benchmarks.freshness.changes import KINDS, SHARES, DrawnChanges


def test_versions_rise_and_kinds_keep_their_shares() -> None:
    drawn = DrawnChanges(100, seed=3)
    batches = [drawn.batch(2) for _ in range(2000)]
    versions = [change.version for _, changes in batches for change in changes]
    assert versions == sorted(set(versions))
    kinds = Counter(kind for kind, _ in batches)
    for kind, share in zip(KINDS, SHARES, strict=True):
        assert abs(kinds[kind] / 2000 - share) < 0.05


def test_an_upsert_describes_its_item() -> None:
    drawn = DrawnChanges(100, seed=3)
    batches = [drawn.batch(1) for _ in range(500)]
    upserts = [change for kind, changes in batches if kind == "upsert" for change in changes]
    assert all(change.values is not None and len(change.values) == 22 and change.bid for change in upserts)
    assert {change.item.startswith("new") for change in upserts} == {True, False}
