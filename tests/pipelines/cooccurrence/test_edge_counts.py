"""The graph against counting by hand, and what must not change it."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

import numpy as np
import pytest

from contracts.config.config import parse
from contracts.errors import EmptyLogError, WindowError
from contracts.features.pair_graph import Relation
from contracts.windows import TimedWindows
from models.pair_rates.graph import PairGraph
from pipelines.cooccurrence import edge_counts
from pipelines.engine.content_hash import content_hash
from tests.pipelines.cooccurrence.paired_log import DAY, START, VOCABULARIES, rows, spec, write

CONFIG = parse("""
name = "t"
log = { path = "p", event_time = "t" }
label = { clicks = { path = "c", on = ["k"], window = "1h" } }
pair_rates = { pairs = [["city", "brand"], ["city", "tags"]], smoothing = 4 }
fields = [
  { name = "city", kind = "categorical", side = "user" }, { name = "region", kind = "categorical", side = "user" },
  { name = "brand", kind = "categorical", side = "item" }, { name = "tags", kind = "multi_valued", side = "item" },
]
""")


def graph(spark, out, config=CONFIG):
    manifest = edge_counts.write(spark, config, out, spec(), VOCABULARIES, config.pair_rates.pairs)
    return manifest, spark.read.parquet(str(out.pair_rates / "edges")).collect()


def ids(name, values):
    known = VOCABULARIES[name].keys().to_pylist()
    return [known.index(value) + 2 if value in known else 1 for value in values or []]


def by_hand(events):
    """{(relation, left, right): [impressions, clicks]} of the three relations that must come out."""
    found: tuple[Counter[tuple[int, int, int]], ...] = Counter(), Counter()
    for event in events:
        city, brand, region = (ids(name, [event[name]])[0] for name in ("city", "brand", "region"))
        edges = {(0, city, brand), (2, city, region), *((1, city, tag) for tag in ids("tags", event["tags"]))}
        for edge in edges:
            found[0][edge] += 1
            found[1][edge] += int(event["_label"])
    return {edge: (shown, found[1][edge]) for edge, shown in found[0].items()}


def test_edges_are_what_counting_by_hand_gives(spark, tmp_path):
    events = rows()
    manifest, edges = graph(spark, write(tmp_path, "a", events))
    inside = [event for event in events if event["_time"] < START + DAY - timedelta(hours=1)]
    found = {(e["relation"], e["left"], e["right"]): (e["impressions"], e["clicks"]) for e in edges}
    assert found == by_hand(inside)
    assert list(manifest.relations) == [
        ("city", "brand", "pair"), ("city", "tags", "pair"), ("city", "region", "link")]
    assert (manifest.rows, manifest.clicks) == (len(inside), sum(int(e["_label"]) for e in inside))
    nodes = spark.read.parquet(str(tmp_path / "a" / "pair_rates" / "nodes")).collect()
    cities = Counter(ids("city", [event["city"]])[0] for event in inside)
    assert {n["id"]: n["impressions"] for n in nodes if n["slot"] == "city"} == cities


def test_rates_are_smoothed_towards_the_relations_own_rate_at_position_one(spark, tmp_path):
    _, edges = graph(spark, write(tmp_path, "a", rows()))
    for relation in (0, 1, 2):
        own = [e for e in edges if e["relation"] == relation]
        prior = sum(e["clicks"] for e in own) / sum(e["exposure"] for e in own)
        for e in own:
            assert e["rate"] == pytest.approx((e["clicks"] + 4 * prior) / (e["exposure"] + 4))
            assert e["exposure"] != e["impressions"]


def test_the_graph_reads_back_in_torch(spark, tmp_path):
    out = write(tmp_path, "a", rows())
    _, edges = graph(spark, out)
    found = PairGraph.read(out.pair_rates)
    assert found.slots == {"city": 6, "brand": 5, "tags": 4, "region": 4}
    assert len(found.edges.relation) == len(edges)
    assert float(found.edges.clicks.sum()) == sum(e["clicks"] for e in edges)


def test_nothing_after_the_cut_off_changes_the_graph(spark, tmp_path):
    """Events moved or added after it, and clicks known only later: a click that came later is none yet."""
    events = rows()
    late = [{**e, "_row": 10_000 + e["_row"], "_time": e["_time"] + DAY, "_known": e["_known"] + DAY,
             "_label_time": e["_label_time"] + DAY, "_label": 1.0} for e in rows(seed=5)]
    learned_late = [{**e, "_label_time": START + 2 * DAY} if e["_row"] % 7 == 0 and e["_label"] else e for e in events]
    unclicked = [{**e, "_label": 0.0} if e["_row"] % 7 == 0 else e for e in events]
    arrived_late = [{**e, "_row": 20_000 + e["_row"], "_known": START + 2 * DAY} for e in rows(seed=6)]
    plain = graph(spark, write(tmp_path, "plain", unclicked))[0]
    moved = graph(spark, write(tmp_path, "moved", [*learned_late, *late, *arrived_late]))[0]
    assert moved == plain
    assert graph(spark, write(tmp_path, "clicked", events))[0] != plain


def test_the_order_and_the_files_of_the_rows_change_nothing(spark, tmp_path):
    events = rows()
    mixed = [events[i] for i in np.random.default_rng(1).permutation(len(events))]
    assert graph(spark, write(tmp_path, "a", events))[0] == graph(spark, write(tmp_path, "b", mixed, files=5))[0]


def test_a_value_that_holds_a_third_of_the_rows_is_counted_in_parts(spark, tmp_path, capsys):
    """Its rows are summed before the shuffle: a task of the second stage gets one partial sum per partition."""
    events = [{**e, "city": "c0", "region": "r0"} if e["_row"] % 3 == 0 else e for e in rows(3000)]
    out = write(tmp_path, "a", events, files=6)
    _, edges = graph(spark, out)
    inside = [event for event in events if event["_time"] < START + DAY - timedelta(hours=1)]
    assert {(e["relation"], e["left"], e["right"]): (e["impressions"], e["clicks"]) for e in edges} == by_hand(inside)
    frame = spark.createDataFrame([([2], [2], 1.0, 1.0)], "city array<int>, brand array<int>, _label float, _exposure "
                                                          "double")
    plan = edge_counts.count_edges(frame, [Relation("city", "brand", "pair")])
    plan.explain("simple")
    text = capsys.readouterr().out
    marks = (("Exchange hashpartitioning", "partitioning=Hash"), ("partial_count", "mode=Partial"))
    shuffle, partial = (max(text.rfind(word) for word in words) for words in marks)
    assert -1 < shuffle < partial, text


def test_an_empty_statistics_window_is_refused(spark, tmp_path):
    late = [{**e, "_time": e["_time"] + DAY, "_known": e["_known"] + DAY} for e in rows(20)]
    with pytest.raises(EmptyLogError, match=r"lengthen windows\.statistics"):
        graph(spark, write(tmp_path, "a", late))


def test_no_statistics_window_is_refused(spark, tmp_path):
    out = write(tmp_path, "a", rows(20))
    TimedWindows(spans={"train": (START, START + DAY)}).write(out.windows)
    with pytest.raises(WindowError, match="pair statistics need a statistics window"):
        graph(spark, out)


def test_manifests_name_the_content(spark, tmp_path):
    out = write(tmp_path, "a", rows())
    manifest, _ = graph(spark, out)
    assert manifest.edges.content_hash == content_hash(spark.read.parquet(str(out.pair_rates / "edges")))
