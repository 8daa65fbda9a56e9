"""The whole job on a small log: raw Parquet in, encoded examples out."""

from __future__ import annotations

import shutil

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from contracts.artifacts import LABEL, ROW, WINDOWS, Artifacts
from contracts.config.config import Config
from contracts.errors import ConfigError, DataError, OneClassError
from contracts.features import vocabulary
from contracts.features.encoding import Encoder
from contracts.features.feature_spec import FeatureSpec
from contracts.features.found_crosses import FoundCross, FoundCrosses, cross_name
from contracts.summaries import summary
from contracts.summaries.features import FeaturesSummary
from contracts.windows import read_timed
from pipelines.engine.content_hash import content_hash
from pipelines.engine.day_partitions import read_table
from pipelines.ingest.ingest import ingest
from pipelines.jobs.feature_job import encode_again, has_found_crosses, make_features
from tests.exported_figures import exported
from tests.heard_progress import heard, names
from tests.pipelines.jobs.small_log import FIELDS, config, write_log
from tests.pipelines.object_store import access, object_store


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return with_nobodys_rows(write_log(tmp_path_factory.mktemp("data")))


def with_nobodys_rows(folder):
    """Three more rows of the log, which say not whose they are."""
    log = pq.read_table(folder / "log.parquet")
    more = log.slice(0, 3).set_column(0, "id", pa.array([9001, 9002, 9003])).set_column(
        1, "user_id", pa.nulls(3, pa.string()))
    pq.write_table(pa.concat_tables([log, more]), folder / "log.parquet")
    return folder


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    return Artifacts(tmp_path_factory.mktemp("out"))


@pytest.fixture(scope="module")
def done(spark, data, out):
    """(summary, names of the steps as told)."""
    with heard() as said:
        return make_features(config(), data, out), names(said)


def table(out, window):
    return ds.dataset(out.examples(window), format="parquet", partitioning="hive").to_table()


def test_every_part_is_told_timed_and_summed_up(done, out):
    figures, told = done
    parts = list(figures.seconds)
    assert parts == ["ingest", "windows", "prior", "features", "check", "fit", "examples", "parity", "online"]
    assert [what for what in told if ": " not in what] == parts
    events = figures.ingest.events
    assert told.index(f"ingest: {events:,} events are written") < told.index(f"features: {events:,} rows at once")
    assert summary.read(out.features, FeaturesSummary) == figures
    assert figures.parity_rows == 40
    assert figures.vocabularies["item"] == 12


def test_durations_rows_and_what_was_quarantined_are_left_for_prometheus(done, out):
    figures, _ = done
    found = exported(out.features, "features")
    assert {name: found[f"seconds.{name}"] for name in figures.seconds} == figures.seconds
    assert found["ingest.rows_in"] == figures.ingest.rows_in > figures.examples["train"].rows
    assert found["ingest.quarantined"] == figures.ingest.quarantined == 3
    assert found["examples.train.rows"] == figures.examples["train"].rows
    assert found["examples.train.positives"] == figures.examples["train"].positives


def test_examples_are_the_rows_of_their_window(done, out):
    spans = read_timed(out.windows)
    for window in WINDOWS:
        found = table(out, window)
        assert len(found) == done[0].examples[window].rows == done[0].check[window].rows
        assert sum(found[LABEL].to_pylist()) == done[0].examples[window].positives
        times = found["_time"].to_pylist()
        assert spans[window][0] <= min(times)
        assert max(times) < spans[window][1]


def test_keys_of_the_test_window_alone_are_unknown(done, out):
    assert "late" not in vocabulary.read(out.encoding, "place").keys().to_pylist()
    assert set(table(out, "test")["place"].to_pylist()) == {1}


def test_columns_are_the_slots_and_the_twins_of_histories(done, out):
    names = set(table(out, "train").column_names)
    spec = FeatureSpec.read(out.encoding)
    assert {slot.name for slot in spec.id_slots("user", "context", "item", "cross")} <= names
    twins = {"recent", "of_item_count_2d#10", "of_item_count_2d", "of_item_rate_2d#10", "of_item_rate_2d"}
    assert {name for name in names if name.endswith("@fresh")} == {f"{name}@fresh" for name in twins}


def test_the_parity_sample_encodes_to_its_ids(done, out):
    rows = pq.read_table(out.parity)
    spec = FeatureSpec.read(out.encoding)
    encoder = Encoder(spec, vocabulary.read_all(out.encoding))
    columns = {f.name: rows[f.name].to_pylist() for f in spec.fields if f.kind != "cross"}
    ids = encoder.encode(columns, "user", "context", "item").ids
    plain = spec.id_slots("user", "context", "item")
    slots = {slot.name: ids[:, slot.start : slot.start + slot.width] for slot in plain}
    slots["pair"] = encoder.cross_ids({name: block[:, 0] for name, block in slots.items()})
    for name, block in slots.items():
        assert np.array(rows[f"id:{name}"].to_pylist()).reshape(len(rows), -1).tolist() == block.tolist(), name
    assert set(rows[ROW].to_pylist()) <= set(table(out, "test")[ROW].to_pylist())
    assert {"_user", "_item"} <= set(rows.column_names)


@pytest.mark.every_engine
def test_a_log_in_an_object_store_is_read_as_files_are(spark, data, tmp_path, monkeypatch):
    shutil.copytree(data, tmp_path / "shop" / "logs")  # an engine keeps the way to a bucket
    with object_store(tmp_path) as endpoint:
        for name, value in access(endpoint).items():
            monkeypatch.setenv(name, value)
        stored = ingest(spark, config(), "s3a://shop/logs", Artifacts(tmp_path / "stored"))
    assert stored == ingest(spark, config(), data, Artifacts(tmp_path / "files"))
    events = (read_table(spark, Artifacts(tmp_path / name).events) for name in ("stored", "files"))
    assert len({content_hash(table) for table in events}) == 1


def test_a_day_made_again_is_the_same_and_touches_no_other(done, data, out):
    days = {path: path.stat().st_mtime_ns for path in out.examples("train").glob("day=*/*.parquet")}
    day = sorted(days)[0].parent.name.removeprefix("day=")
    again = make_features(config(), data, out, day=day)
    assert again.day == day
    assert again.windows is None
    assert again.check is None
    assert all(rows.written == () for rows in again.examples.values())
    unwritten = {"written": ()}
    assert again.examples == {name: rows.model_copy(update=unwritten) for name, rows in done[0].examples.items()}
    after = {path: path.stat().st_mtime_ns for path in out.examples("train").glob("day=*/*.parquet")}
    assert after == days


def test_a_day_in_another_spelling_of_iso_8601_is_that_day(done, data, out, tmp_path):
    own = Artifacts(tmp_path / "out")
    shutil.copytree(out.out, own.out)
    again = make_features(config(), data, own, day="20260107", until="2026W034")
    assert (again.day, again.until, list(again.ingest.days)) == ("2026-01-07", "2026-01-15", ["2026-01-07"])
    assert {name: rows.content_hash for name, rows in again.examples.items()} == {
        name: rows.content_hash for name, rows in done[0].examples.items()}


def test_what_is_no_day_is_refused_before_anything_is_written(done, data, out):
    written = {path: path.stat().st_mtime_ns for path in out.out.rglob("*")}
    for day, until in ((" 2026-01-07", None), (None, "yesterday")):
        with pytest.raises(ConfigError, match="is no day; write it as YYYY-MM-DD"):
            make_features(config(), data, out, day=day, until=until)
    assert {path: path.stat().st_mtime_ns for path in out.out.rglob("*")} == written


def test_a_day_of_training_reads_no_other_days_features_and_examples(done, data, out, tmp_path):
    own = Artifacts(tmp_path / "out")
    shutil.copytree(out.out, own.out)
    day = sorted(own.examples("train").glob("day=*"))[1].name
    places = [own.features, *(own.examples(window) for window in WINDOWS)]
    damaged = [file for place in places for file in place.glob("day=*/*.parquet") if file.parent.name != day]
    for file in damaged:
        file.write_bytes(b"-" * file.stat().st_size)
    again = make_features(config(), data, own, day=day.removeprefix("day="))
    assert {name: rows.content_hash for name, rows in again.examples.items()} == {
        name: rows.content_hash for name, rows in done[0].examples.items()}
    assert again.parity_rows == 40


def test_a_kept_encoding_gives_every_row_the_ids_that_it_had(done, data, out, tmp_path):
    """In other windows, on which another encoding would be fitted. Counters have those windows' base rate in them."""
    own = Artifacts(tmp_path)
    shares = {"statistics": 0.5, "train": 0.2, "validation": 0.15, "test": 0.15}
    later = Config.model_validate(config().model_dump() | {"windows": shares})
    made = make_features(later, data, own, encoding=out.out)
    spec = FeatureSpec.read(own.encoding)
    assert "fit" not in made.seconds
    assert spec == FeatureSpec.read(out.encoding)
    names = [slot.name for slot in spec.id_slots("user", "item", "context", "cross")
             if spec.by_name[slot.field].kind != "counter"]
    before, now = ({row[ROW]: row for window in WINDOWS for row in table(one, window).select([ROW, *names]).to_pylist()}
                   for one in (out, own))
    shared = before.keys() & now.keys()
    assert len(shared) > 300
    assert {row: now[row] for row in shared} == {row: before[row] for row in shared}


def test_negatives_are_thinned_in_training_alone(done, data, tmp_path):
    thinned = make_features(config(negative_rate=0.25), data, Artifacts(tmp_path)).examples
    whole = done[0].examples
    assert all(thinned[window] == whole[window] for window in ("validation", "test"))
    assert thinned["train"].positives == whole["train"].positives
    negatives = [part["train"].rows - part["train"].positives for part in (thinned, whole)]
    assert 0.15 < negatives[0] / negatives[1] < 0.35


@pytest.mark.every_engine
def test_a_day_before_any_whole_run_is_refused(spark, data, tmp_path):
    with pytest.raises(DataError, match="without --day first"):
        make_features(config(), data, Artifacts(tmp_path), day="2026-01-07")


def test_labels_of_one_class_are_refused(spark, tmp_path):
    with pytest.raises(OneClassError):
        make_features(config(), write_log(tmp_path / "data", click_rate=0.0), Artifacts(tmp_path / "out"))


@pytest.mark.slow
def test_a_refused_run_leaves_the_online_tables_of_the_last_good_one(spark, data, tmp_path):
    out = Artifacts(tmp_path / "out")
    make_features(config(), data, out)
    online = out.out / "online"
    before = {file: file.read_bytes() for file in sorted(online.rglob("*.parquet"))}
    assert before
    late = write_log(tmp_path / "data") / "clicks.parquet"
    clicks = pq.read_table(late)
    pq.write_table(clicks.slice(len(clicks) - 30), late)  # none of training's
    with pytest.raises(OneClassError, match="'train'"):
        make_features(config(), late.parent, out)
    assert {file: file.read_bytes() for file in sorted(online.rglob("*.parquet"))} == before


def found_cross(*parts, representation="embedding", min_count=2):
    return FoundCross(name=cross_name(parts), parts=parts, importance=0.9, gain=5.0, support=3, min_count=min_count,
                      representation=representation)


@pytest.mark.slow
def test_encoding_again_with_found_crosses_is_the_whole_job_with_them(spark, data, tmp_path):
    again, whole = Artifacts(tmp_path / "again"), Artifacts(tmp_path / "whole")
    crosses = FoundCrosses(digest="d", crosses=(
        found_cross("place", "item"), found_cross("user", "price#4", representation="product")))
    make_features(config(), data, again)
    assert has_found_crosses(config(), again)
    for out in (again, whole):
        crosses.write(out.crosses)
    assert not has_found_crosses(config(), again)
    added = encode_again(config(), again)
    complete = make_features(config(), data, whole)
    assert has_found_crosses(config(), again)
    assert added.examples == complete.examples
    assert added.vocabularies == complete.vocabularies
    assert FeatureSpec.read(again.encoding) == FeatureSpec.read(whole.encoding)
    assert {"place_x_item", "pair"} <= set(table(again, "test").column_names)
    assert "user_x_price_4" not in table(again, "test").column_names


@pytest.mark.slow
def test_crosses_of_the_same_names_are_encoded_again_where_a_search_would_have_them_otherwise(spark, data, tmp_path):
    """And are not where it says what it said, also after a day was made again."""
    out = Artifacts(tmp_path)
    found(out, found_cross("place", "item"), found_cross("user", "item"))
    made = make_features(config(), data, out)
    make_features(config(), data, out, day=made.examples["train"].written[0])
    assert has_found_crosses(config(), out)
    for changed in ({"representation": "product"}, {"min_count": 40}):
        found(out, found_cross("place", "item", **changed), found_cross("user", "item"))
        assert not has_found_crosses(config(), out)
        encode_again(config(), out)
        assert has_found_crosses(config(), out)
    assert FeatureSpec.read(out.encoding).by_name["place_x_item"].representation == "embedding"
    make_features(config(), data, out, encoding=out.out)
    assert has_found_crosses(config(), out)
    found(out, found_cross("user", "item"), found_cross("place", "item", min_count=40))
    encode_again(config(), out)
    found(out, found_cross("place", "item", min_count=40), found_cross("user", "item"))
    assert not has_found_crosses(config(), out)


@pytest.mark.slow
@pytest.mark.parametrize("changed", [
    {"price": {"granularities": [8]}}, {"place": {"name": "where", "column": "place"}},
], ids=["other bins", "renamed"])
def test_a_whole_run_leaves_out_found_crosses_of_fields_that_are_gone(spark, data, tmp_path, changed):
    """A day of a run that has them is refused, with what helps; one of a run that left them out is not."""
    plain = [field for field in FIELDS if field["kind"] != "cross"]
    later, out = config([field | changed.get(field["name"], {}) for field in plain]), Artifacts(tmp_path)
    found(out, found_cross("place", "price#4"), found_cross("user", "item"))
    day = make_features(config(plain), data, out).examples["train"].written[0]
    with pytest.raises(DataError, match="run `sluice features` without --day"):
        make_features(later, data, out, day=day)
    assert make_features(later, data, out).crosses == ("user_x_item",)
    assert make_features(later, data, out, day=day).crosses == ("user_x_item",)
    with pytest.raises(DataError, match="place_x_price_4"):
        has_found_crosses(later, out)


def found(out, *crosses):
    FoundCrosses(digest="d", crosses=crosses).write(out.crosses)


def test_encoding_again_needs_features(spark, tmp_path):
    with pytest.raises(DataError, match="no features"):
        encode_again(config(), Artifacts(tmp_path))
