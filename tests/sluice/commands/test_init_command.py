"""`sluice init` as a user meets it: a configuration that runs, or one sentence that says what is missing."""

from __future__ import annotations

import io
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest
from rich.console import Console

from contracts.artifacts import Artifacts
from contracts.config.config import load
from contracts.errors import ConfigError, DataError
from sluice.commands.init_command import write_config
from sluice.init.side_tables import MOST_FILES
from sluice.run import jobs
from tests.sluice.unlike_files import UNLIKE, dates_as_text, no_header


def console(text: io.StringIO | None = None) -> Console:
    return Console(file=text or io.StringIO(), width=200)


def test_it_shows_each_column_with_its_reason_and_what_to_do_next(tmp_path: Path) -> None:
    shown = io.StringIO()
    found = write_config(dates_as_text(tmp_path), tmp_path / "made.toml", None, False, console(shown))
    text = shown.getvalue()
    for part in ("user_id", "the user", "each item has one", "d/M/yyyy H:mm", "next: sluice run"):
        assert part in text
    assert found.roles["event_time"] == "event_time"
    assert load(tmp_path / "made.toml").log.user_id == "user_id"


def test_files_beside_the_log_that_are_not_looked_at_are_said(tmp_path: Path) -> None:
    shown, path = io.StringIO(), dates_as_text(tmp_path)
    for number in range(MOST_FILES + 3):
        (tmp_path / f"z{number:03d}.csv").write_text("kind,height\n" + "a,1.5\n" * 9)
    write_config(path, tmp_path / "made.toml", None, False, console(shown))
    assert "z030.csv to z032.csv: 3 of" in shown.getvalue()
    assert "# Not joined: z030.csv to z032.csv: 3 of" in (tmp_path / "made.toml").read_text()


def test_an_existing_configuration_is_not_overwritten_unless_asked(tmp_path: Path) -> None:
    target = tmp_path / "mine.toml"
    target.write_text("precious")
    with pytest.raises(ConfigError, match="--force"):
        write_config(no_header(tmp_path), target, None, False, console())
    assert target.read_text() == "precious"
    write_config(no_header(tmp_path), target, None, True, console())
    assert load(target).name == "no_header"


def test_a_folder_named_from_within_is_read_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "log" / "sub").mkdir(parents=True)
    no_header(tmp_path).rename(tmp_path / "log" / "t.tsv")
    for here, path in (("log", "."), ("log/sub", "..")):
        monkeypatch.chdir(tmp_path / here)
        write_config(Path(path), tmp_path / "made.toml", None, True, console())
        found = load(tmp_path / "made.toml")
        assert (found.name, found.data, found.log.path) == ("log", str(tmp_path), "{data}/log")


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        (["1,a", "0,b"] * 20, "at least 100 are needed"),
        (["1,a", *["0,b"] * 300], "at least 10 rows"),
        ([f"{row},{row % 7}" for row in range(300)], "there is no label.*--label"),
        (["1,same", "0,same"] * 100, "at least one feature"),
    ],
)
def test_one_sentence_says_what_is_missing(rows: list[str], sentence: str, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("\n".join(rows) + "\n")
    with pytest.raises(DataError, match=sentence) as refused:
        write_config(path, tmp_path / "t.toml", None, False, console())
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "t.toml").exists()


def test_a_file_of_nothing_but_lists_lacks_a_label(tmp_path: Path) -> None:
    pq.write_table(pa.table({"tags": [["a", "b"], ["c"]] * 100}), tmp_path / "t.parquet")
    with pytest.raises(DataError, match="there is no label"):
        write_config(tmp_path / "t.parquet", tmp_path / "t.toml", None, False, console())


@pytest.mark.parametrize(("every", "delay"), [(900, 60), (900, 7200), (60, 60)])
def test_clicks_beside_the_impressions_count(every: int, delay: int, tmp_path: Path) -> None:
    start = 1_772_323_200
    (tmp_path / "impressions.csv").write_text("id,ts,user_id,item_id\n" + "".join(
        f"s{row * 7919 % 99991},{start + every * row},u{row % 40},i{row % 37}\n" for row in range(3000)))
    (tmp_path / "clicks.csv").write_text("id,event_time\n" + "".join(
        f"s{row * 7919 % 99991},{start + every * row + delay}\n" for row in range(0, 3000, 5)))
    shown = io.StringIO()
    write_config(tmp_path / "impressions.csv", tmp_path / "made.toml", None, False, console(shown))
    assert "a row of clicks.csv within" in shown.getvalue()
    jobs.run_features(load(tmp_path / "made.toml"), None, Artifacts(tmp_path / "out"), console())
    labels = pq.read_table(tmp_path / "out" / "ingest" / "events").column("_label").to_pylist()
    assert (len(labels), sum(map(bool, labels))) == (3000, 600)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_folder_with_its_own_configuration_is_read_by_a_pattern(
    ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "log").mkdir()
    monkeypatch.chdir(tmp_path / "log")
    table = pa.table({"size": [float(row * 7 % 50) for row in range(2000)], "y": [row % 3 // 2 for row in range(2000)]})
    for part in range(2):
        file = Path(f"{part}.{ending}")
        pq.write_table(table, file) if ending == "parquet" else pc.write_csv(table, file)
    for _ in range(2):
        write_config(Path("."), None, None, True, console())
    config = load(Path("log.toml"))
    assert config.log.path == f"{{data}}/log/*.{ending}"
    assert jobs.run_features(config, None, Artifacts(tmp_path / "out"), console())[0].ingest.rows_in == 4000


@pytest.mark.parametrize("key", ["user_{0}", "{0}"])
def test_rows_without_a_user_are_users_of_their_own(key: str, tmp_path: Path) -> None:
    rows = [("" if row % 25 == 3 else key.format(row * 7 % 40), f"i{row % 9}", 1_772_323_200 + 600 * row, row % 3 // 2)
            for row in range(2000)]
    path = tmp_path / "t.csv"
    path.write_text("user_id,item_id,ts,click\n" + "".join(f"{u},{i},{t},{c}\n" for u, i, t, c in rows))
    write_config(path, tmp_path / "made.toml", None, False, console())
    made, _ = jobs.run_features(load(tmp_path / "made.toml"), None, Artifacts(tmp_path / "out"), console())
    assert made.ingest.quarantined == 0
    events = pq.read_table(tmp_path / "out" / "ingest" / "events").column("_user").to_pylist()
    assert len(events) == 2000
    assert len({user for user in events if user.startswith("unknown/")}) == 80
    assert len(set(events)) == 120


def test_a_log_of_unsigned_hashes_runs(tmp_path: Path) -> None:
    rows, factor = range(2000), 11_400_714_819_323_198_485
    columns = {"user_id": [row * 7 % 40 * factor % 2**64 for row in rows], "site": [row % 13 for row in rows],
               "item_id": [row % 9 * factor % 2**64 for row in rows], "ts": [1_772_323_200 + 600 * row for row in rows],
               "click": [row % 3 // 2 for row in rows]}
    pq.write_table(pa.table({name: pa.array(of, pa.uint64()) for name, of in columns.items()}), tmp_path / "t.parquet")
    write_config(tmp_path / "t.parquet", tmp_path / "made.toml", None, False, console())
    made, _ = jobs.run_features(load(tmp_path / "made.toml"), None, Artifacts(tmp_path / "out"), console())
    assert (made.ingest.rows_in, made.ingest.quarantined) == (2000, 0)
    events = pq.read_table(tmp_path / "out" / "ingest" / "events")
    assert set(events.column("_user").to_pylist()) == set(map(str, columns["user_id"]))


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_header_in_the_middle_of_the_file_goes_to_quarantine_alone(ending: str, tmp_path: Path) -> None:
    names = ["user_id", "item_id", "ts", "rating"]
    rows = [[f"u{row % 40}", f"i{row % 9}", str(1_772_323_200 + 600 * row), f"{row * 7 % 5 + 1}.0"]
            for row in range(2000)]
    rows = [*rows[:1000], names, *rows[1000:]]
    path = tmp_path / f"t.{ending}"
    if ending == "csv":
        path.write_text("\n".join(map(",".join, [names, *rows])) + "\n")
    else:
        pq.write_table(pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))), path)
    found = write_config(path, tmp_path / "made.toml", None, False, console())
    assert (found.label, found.roles["event_time"]) == ("rating >= 4", "event_time")
    made, _ = jobs.run_features(load(tmp_path / "made.toml"), None, Artifacts(tmp_path / "out"), console())
    assert (made.ingest.rows_in, made.ingest.quarantined) == (2001, 1)


@pytest.mark.slow
@pytest.mark.parametrize("make", UNLIKE, ids=lambda make: make.__name__)
def test_the_configuration_of_each_unlike_file_runs(make, tmp_path: Path) -> None:
    write_config(make(tmp_path), tmp_path / "made.toml", None, False, console())
    config, out = load(tmp_path / "made.toml"), Artifacts(tmp_path / "out")
    quick = config.train.model_copy(update={"tower_epochs": 1, "models": ("logistic_regression",), "lightgbm_rows": 0})
    made, _ = jobs.run_features(config.model_copy(update={"train": quick}), None, out, console())
    assert made.ingest.quarantined == 0
    trained = jobs.run_train(config.model_copy(update={"train": quick}), out, console())
    assert trained.models["logistic_regression"].auc > 0.6
