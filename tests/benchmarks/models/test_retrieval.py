from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.models.retrieval import main, options, read
from contracts.errors import ConfigError, DataError
from tests.benchmarks.printed_figures import all_finite, last_line, refuses

QUICK = ["--models", "popularity", "sasrec", "--set", 'sasrec={"epochs": 1, "encoder": {"width": 8}}']


@pytest.fixture
def lines(tmp_path):
    random = np.random.default_rng(0)
    rows = [f"{user} " + " ".join(map(str, random.permutation(30)[:random.integers(3, 9)])) for user in range(50)]
    (tmp_path / "log.txt").write_text("\n".join(rows))
    return tmp_path / "log.txt"


def test_the_last_line_has_the_figures_of_every_set_and_model(lines, capsys):
    main([f"one={lines}", str(lines), *QUICK, "--seeds", "2", "--json"])
    found = last_line(capsys.readouterr().out)["retrieval"]
    assert set(found) == {"one", "log"}
    for models in found.values():
        assert set(models) == {"popularity", "sasrec"}
        for figures in models.values():
            assert {"recall_at_10", "ndcg_at_10", "rows_per_second"} <= set(figures)
            assert figures["seeds"] == 2
    assert all_finite(found)
    assert found["one"]["sasrec"]["rows_per_second"] > 0


def test_what_was_run_before_is_not_run_again(lines, tmp_path, capsys):
    for _ in range(2):
        main([f"one={lines}", *QUICK, "--out", str(tmp_path / "kept"), "--json"])
    first, second = (text for text in capsys.readouterr().out.splitlines() if text.startswith('{"retrieval"'))
    assert first == second  # seconds included


def test_a_log_of_columns_is_cut_in_time(tmp_path, capsys):
    random = np.random.default_rng(0)
    table = pa.table({"user_id": random.integers(0, 20, 400), "item_id": random.integers(0, 80, 400),
                      "at": np.sort(random.integers(0, 10**6, 400))})
    pq.write_table(table, tmp_path / "log.parquet")
    main([str(tmp_path / "log.parquet"), "--time", "at", "--split", "time", "--models", "recent_popularity", "--json"])
    assert all_finite(last_line(capsys.readouterr().out))
    with pytest.raises(DataError, match="no column 'when'"):
        main([str(tmp_path / "log.parquet"), "--time", "when"])


def test_sequence_encoders_are_told_of_events_that_are_asked_for(tmp_path, capsys):
    random = np.random.default_rng(0)
    table = pa.table({"user_id": random.integers(0, 20, 400), "item_id": random.integers(0, 80, 400),
                      "at": pa.array(np.sort(random.integers(0, 10**6, 400)), pa.timestamp("s")),
                      "stars": random.integers(1, 6, 400)})
    pq.write_table(table, tmp_path / "log.parquet")
    path, told = str(tmp_path / "log.parquet"), ["--time", "at", "--events", "time", "stars"]
    made = read(tmp_path / "log.parquet", options().parse_args([path, *told]))
    assert made.told is not None
    assert made.told.tables == (34, 7)
    assert made.times is not None
    assert made.times.max() == int(np.asarray(table["at"].cast(pa.int64())).max()) * 10**6
    main([path, *told, *QUICK, "--split", "time", "--json"])
    assert all_finite(last_line(capsys.readouterr().out))
    with pytest.raises(ConfigError, match="--time"):
        main([path, "--events", "time"])


def test_wrong_use_is_refused(lines):
    assert refuses(main, str(lines), "--models", "sasrek")
    for wrong in ("ease={l2: 1}", 'ease={"l3": 1}'):
        with pytest.raises(ConfigError, match="ease"):
            main([str(lines), "--models", "ease", "--set", wrong])


def test_mixed_brings_the_other_models_together_as_they_are_set(lines, capsys):
    models = ["--models", "popularity", "ease", "mixed", "--set", 'ease={"l2": 7}']
    main([f"one={lines}", *models, "--set", 'mixed={"candidates": 10}', "--refit", "--json"])
    found = last_line(capsys.readouterr().out)["retrieval"]["one"]
    assert set(found) == {"popularity", "ease", "mixed"}
    assert all_finite(found)
    main([f"one={lines}", "--models", "mixed", "--json"])  # of its own models, alone
    assert all_finite(last_line(capsys.readouterr().out))


def test_a_given_split_is_refitted_on_validation(tmp_path, capsys):
    random = np.random.default_rng(0)
    rows = [f"{user} " + " ".join(map(str, random.permutation(30)[:8])) for user in range(50)]
    (tmp_path / "train.txt").write_text("\n".join(rows))
    (tmp_path / "test.txt").write_text("\n".join(f"{user} {30 + user % 3} {user % 30}" for user in range(50)))
    found = []
    for more in ([], ["--refit"]):
        main([f"one={tmp_path / 'train.txt'},{tmp_path / 'test.txt'}", *QUICK, *more, "--json"])
        found.append(last_line(capsys.readouterr().out)["retrieval"]["one"])
    assert all_finite(found[1])
    for model in ("popularity", "sasrec"):
        assert found[0][model]["validation_ndcg_at_10"] == found[1][model]["validation_ndcg_at_10"]
        assert found[0][model]["ndcg_at_10"] != found[1][model]["ndcg_at_10"]


def test_what_was_kept_of_another_split_of_as_many_actions_is_not_taken(tmp_path, capsys):
    random = np.random.default_rng(0)
    rows = [list(map(str, random.permutation(30)[:8])) for _ in range(50)]
    for name, part in (("log", slice(None)), ("train", slice(5)), ("test", slice(5, None)), ("early", slice(6)),
                       ("late", slice(6, None))):
        (tmp_path / f"{name}.txt").write_text("\n".join(
            " ".join([str(user), *items[part]]) for user, items in enumerate(rows)))
    found = []
    for files in ("log.txt", "train.txt,{0}/test.txt", "early.txt,{0}/late.txt"):
        main([f"one={tmp_path}/{files.format(tmp_path)}", "--models", "popularity", "--out", str(tmp_path), "--json"])
        found.append(last_line(capsys.readouterr().out)["retrieval"]["one"]["popularity"]["ndcg_at_10"])
    assert len(set(found)) == 3
