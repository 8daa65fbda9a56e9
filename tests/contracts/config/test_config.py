from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from contracts.config.config import Config, load, parse
from contracts.errors import ConfigError

EXAMPLES = sorted((Path(__file__).parents[3] / "examples").glob("*.toml"))
MINIMAL = """
name = "tiny"
[log]
path = "{data}/log"
user_id = "user"
item_id = "item"
event_time = "time"
[label]
expression = "clicked"
[[fields]]
name = "city"
kind = "categorical"
side = "user"
"""
WINDOWS = """
[windows]
statistics = [2026-01-01, 2026-01-03]
train = [2026-01-03, {train_end}]
validation = [2026-01-07, 2026-01-08]
test = [2026-01-08, 2026-01-10]
"""


def problems(text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        parse(text)
    return str(caught.value)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_is_valid(path):
    assert isinstance(load(path), Config)


def test_a_minimal_file_has_fewer_than_25_lines():
    parse(MINIMAL)
    assert len(MINIMAL.strip().splitlines()) < 25


@pytest.mark.parametrize(
    ("addition", "where", "cure"),
    [
        ("[trian]\nepochs = 1", "trian", "did you mean 'train'?"),
        ("[train]\nepoch = 1", "train.epoch", "did you mean 'epochs'?"),
        ("[label.clicks]\npath = 'x'\non = ['a']\nwindw = '1d'", "label.clicks.windw", "did you mean 'window'?"),
    ],
)
def test_an_unknown_key_is_refused_with_the_nearest_right_one(addition, where, cure):
    message = problems(MINIMAL + addition)
    assert where in message
    assert cure in message


def test_a_value_that_changed_its_name_is_refused_with_the_new_name():
    assert "'precomputed' or 'on_request'" in problems(f"{MINIMAL}[prerank]\nitem_side = 'fresh'\n")


def test_all_errors_come_in_one_message():
    message = problems(MINIMAL + "[train]\nepochs = 0\nlearning_rate = -1\n[retrieve]\ncandidates = 'many'\n[spork]\n")
    for where in ("train.epochs", "train.learning_rate", "retrieve.candidates", "spork"):
        assert where in message
    assert "4 problem(s)" in message


@pytest.mark.parametrize(
    ("field", "complaint"),
    [
        ("kind = 'sequence'\nside = 'user'", "needs of"),
        ("kind = 'counter'\nside = 'user'", "needs by, windows"),
        ("kind = 'cross'\nside = 'cross'", "needs parts"),
        ("kind = 'cross'\nside = 'item'\nparts = ['city', 'city']", "side = 'cross'"),
        ("kind = 'cross'\nside = 'cross'\nparts = ['city', 'cty']", "did you mean 'city'?"),
        ("kind = 'cross'\nside = 'cross'\nparts = ['city', 'city#7']", "no granularity '7'"),
        ("kind = 'sequence'\nside = 'user'\nof = 'city'", "categorical field of the item"),
        ("kind = 'counter'\nside = 'context'\nby = ['city']\nwindows = ['1d']", "'user' or 'item'"),
        ("kind = 'categorical'\nside = 'cross'", "only kind 'cross'"),
    ],
)
def test_an_incomplete_field_says_what_it_needs(field, complaint):
    assert complaint in problems(MINIMAL + f"[[fields]]\nname = 'extra'\n{field}\n")


def test_a_field_defined_twice_is_refused():
    assert "defined twice" in problems(MINIMAL + "[[fields]]\nname = 'city'\nkind = 'numeric'\nside = 'user'\n")


def test_an_empty_window_is_refused():
    assert "'train' is empty" in problems(MINIMAL + WINDOWS.format(train_end="2026-01-03"))
    assert "'validation' has share 0" in problems(MINIMAL + "[windows]\nvalidation = 0.0\ntrain = 0.7\n")


def test_dates_are_utc():
    config = parse(MINIMAL + WINDOWS.format(train_end="2026-01-06T12:00:00"))
    assert config.windows.train == (datetime(2026, 1, 3, tzinfo=UTC), datetime(2026, 1, 6, 12, tzinfo=UTC))


@pytest.mark.parametrize(
    ("addition", "complaint"),
    [
        ("[windows]\nembargo = '1h'\n", "shorter than the label window"),
        ("[prerank]\nkeep = 5000\n", "exceeds retrieve.candidates"),
        ("[prerank]\nrecall_at = 300\n", "prerank.recall_at 300 exceeds prerank.keep"),
        ("[prerank]\npenalties = [1.0, 0.5]\n", "must rise"),
        ("[serve]\ndefault_limit = 200\nmax_limit = 150\n", "exceeds max_limit"),
        ("[serve]\nmax_limit = 500\n", "exceeds prerank.keep"),
        ("[serve]\nreserve_ms = 100\n", "serve.reserve_ms 100 leaves nothing of serve.deadline_ms 100 and"),
        ("[serve]\nreserve_ms = inf\n", "serve.reserve_ms: Input should be a finite number"),
        ("[train]\ntemperature = nan\n", "train.temperature: Input should be a finite number"),
        ("[serve]\nmax_deadline_ms = 3\n", "serve.reserve_ms 3 leaves nothing"),
        ("[serve]\nmax_queue = 1000001\n", "less than or equal to 1000000"),
        ("[serve]\nuser_store_ms = 60001\n", "less than or equal to 60000"),
        ("[rerank]\nkind = 'auction'\n", "needs log.bid"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(addition, complaint):
    clicks = MINIMAL.replace('expression = "clicked"', "clicks = { path = 'c', on = ['item'], window = '1d' }")
    assert complaint in problems(clicks + addition)


def test_a_log_without_times_has_no_past_requests_to_learn_from():
    timeless = MINIMAL.replace('event_time = "time"\n', "")
    assert parse(MINIMAL).prerank_kind == "fscd"
    assert parse(timeless).prerank_kind == "towers"
    assert "take 'towers'" in problems(timeless + "[prerank]\nkind = 'fscd'\n")


def test_a_rate_whose_window_cannot_hold_a_closed_impression_is_refused():
    clicks = MINIMAL.replace("expression = \"clicked\"", "clicks = { path = 'c', on = ['item'], window = '1d' }")
    counter = "[[fields]]\nname = 'ctr'\nkind = 'counter'\nside = 'item'\nby = ['item']\nwindows = ['{window}']\n"
    assert "rate over 1d would always be empty" in problems(clicks + counter.format(window="1d"))
    parse(clicks + counter.format(window="2d"))


def test_a_missing_data_folder_is_named_with_its_cure():
    config = parse(MINIMAL)
    assert config.path(config.log, Path("here")) == "here/log"
    for address in ("s3a://bucket/logs", "hdfs://name:9000/logs", "abfss://box@account.dfs.core.windows.net/logs"):
        assert config.path(config.log, address) == config.path(config.log, f"{address}/") == f"{address}/log"
    with pytest.raises(ConfigError, match="give --data DIR"):
        config.path(config.log)


def test_broken_toml_and_a_missing_file_are_config_errors(tmp_path):
    assert "not valid TOML" in problems("name = ")
    with pytest.raises(ConfigError, match=r"cannot read the configuration .*absent\.toml"):
        load(tmp_path / "absent.toml")


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        ('pairs = [["city", "brnd"]]', "'brnd' is no field"),
        ('pairs = [["city", "price"]]', "'price' has no values of its own; name its bins, as in price#10"),
        ('pairs = [["city", "price#7"]]', "'price' has no granularity '7'"),
        ('pairs = [["city", "city"]]', "a pair takes two different fields, once"),
        ('pairs = [["city", "price#10"], ["city", "price#10"]]', "a pair takes two different fields, once"),
        ("initialise_embeddings = true\ndim = 8", "pair_rates.dim is 8, train.embedding_dim 16"),
        ('model = "gnn"', "pair_rates.model"),
    ],
)
def test_pairs_that_cannot_have_a_rate_are_refused(keys, sentence):
    price = '[[fields]]\nname = "price"\nkind = "numeric"\nside = "item"\ngranularities = [10]\n'
    assert sentence in problems(f"{MINIMAL}{price}[pair_rates]\n{keys}\n")
    parse(f'{MINIMAL}{price}[pair_rates]\npairs = [["city", "price#10"]]\n')


PLAIN = """
name = "plain"
[log]
path = "log"
[label]
expression = "y"
[[fields]]
name = "city"
kind = "categorical"
side = "context"
"""
COUNTER = """
[[fields]]
name = "seen"
kind = "counter"
side = "user"
by = ["city"]
windows = ["1d"]
"""


@pytest.mark.parametrize(
    ("addition", "message"),
    [
        (COUNTER, "counter 'seen' needs times, and the log has none; set log.event_time"),
        (COUNTER, "counter 'seen' needs log.user_id"),
        ('[pair_rates]\npairs = [["city", "city"]]', "pair_rates.pairs need a window of their own in time"),
        (WINDOWS.format(train_end="2026-01-07"), "windows as dates need log.event_time"),
        ("[windows]\nembargo = '1h'", "windows.embargo needs log.event_time"),
    ],
)
def test_a_table_without_times_or_users_is_told_what_it_cannot_have(addition, message):
    assert message in problems(PLAIN + addition)


def test_test_rows_need_a_table_without_times():
    text = "[windows]\ntest_where = 'x'\nstatistics = 0\ntrain = 0.8\nvalidation = 0.2"
    assert parse(PLAIN + text).windows.test_where == "x"
    assert "windows.test_where is for tables without times" in problems(MINIMAL + text)


ALONE = MINIMAL.replace('expression = "clicked"', "positives_only = true")
TAKEN = '[[fields]]\nname = "taken"\nkind = "counter"\nside = "item"\nby = ["item"]\nwindows = ["7d"]\n'


@pytest.mark.parametrize(("text", "sentence"), [
    (ALONE.replace('user_id = "user"\n', ""), "set log.user_id"),
    (ALONE.replace('item_id = "item"\n', ""), "set log.item_id"),
    (ALONE.replace('event_time = "time"\n', ""), "set log.event_time"),
    (ALONE.replace("[log]", '[log]\nposition = "rank"'), "log.position is about what was shown"),
    (ALONE.replace("[log]", '[log]\nbid = "price"'), "log.bid is about what was shown"),
    (ALONE + "[features]\nnegative_rate = 0.5\n", "draw fewer with label.negatives.per_positive"),
    (ALONE + TAKEN, "a rate of positives alone is always 1; set statistics = ['count']"),
])
def test_what_says_nothing_of_positives_alone_is_refused_with_the_cure(text, sentence):
    assert sentence in problems(text)


def test_a_log_of_positives_alone_needs_no_more_than_users_items_and_times():
    assert parse(ALONE + TAKEN + 'statistics = ["count"]\n').label.positives_only
