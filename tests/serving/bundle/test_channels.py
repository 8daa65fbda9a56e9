from __future__ import annotations

import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from contracts.artifacts import SCORES
from contracts.errors import BundleError, ParityError
from serving.bundle.item_set import ItemSet
from serving.bundle.loaded_bundle import LoadedBundle

PARITY = "parity/channels/sasrec.parquet"


def rows_of(bundle, *keys):
    return bundle.items.rows(keys)


def test_what_follows_on_the_ring_comes_first(with_channel):
    channel, = with_channel.channels
    best = channel.best(rows_of(with_channel, "i12", "i11", "i10"), 3, None)  # newest first
    assert with_channel.items.keys_of(best[:1]) == ["i13"]


def test_only_items_that_the_encoder_knows_come(with_channel):
    channel, = with_channel.channels
    best = channel.best(rows_of(with_channel, "i10"), len(with_channel.items), None)
    new = rows_of(with_channel, *(f"i{number}" for number in range(75, 80)))
    assert len(best) == 75
    assert not np.isin(new, best).any()


def test_filters_hold(with_channel):
    channel, = with_channel.channels
    mask = np.zeros(len(with_channel.items), dtype=bool)
    mask[::7] = True
    best = channel.best(rows_of(with_channel, "i10"), 5, ItemSet.of(mask))
    assert len(best) == 5
    assert mask[best].all()


def test_by_value_the_bid_counts_as_log_odds(with_channel):
    channel, = with_channel.channels
    recent = rows_of(with_channel, "i10")
    everything = np.arange(75)
    scores = channel.scores(recent, everything)
    plain, valued = (channel.best(recent, 75, None, by_value) for by_value in (False, True))
    assert plain.tolist() == np.argsort(-scores, kind="stable").tolist()
    value = scores + np.log(np.asarray(with_channel.bids)[:75])
    assert np.all(np.diff(value[valued]) <= 1e-4)


def test_a_history_of_unknown_items_has_no_vector(with_channel):
    channel, = with_channel.channels
    assert channel.vector(rows_of(with_channel, "i79")) is None
    assert len(channel.best(rows_of(with_channel, "i79"), 5, None)) == 0


def test_new_items_in_a_history_are_passed_over(with_channel):
    channel, = with_channel.channels
    with_new, without = (channel.vector(rows_of(with_channel, *keys)) for keys in (("i79", "i10", "i09"),
                                                                                   ("i10", "i09")))
    np.testing.assert_array_equal(with_new, without)


def test_parity_is_recorded(with_channel):
    parity = with_channel.channels[0].parity
    assert (parity.rows, parity.mismatches) == (64, 0)
    assert parity.max_logit_difference < 1e-4


def test_another_score_than_trainings_is_refused(channel_folder, tmp_path, republish):
    folder = shutil.copytree(channel_folder, tmp_path / "bundle")
    table = pq.read_table(folder / PARITY)
    scores = table[SCORES].to_pylist()
    scores[3][0] += 0.1
    pq.write_table(table.set_column(table.schema.get_field_index(SCORES), SCORES, pa.array(scores)), folder / PARITY)
    with pytest.raises(ParityError, match=r"'sasrec'.* 1 of 64 histories.*history 3"):
        LoadedBundle.load(republish(folder))


def test_a_channel_without_parity_rows_is_refused(channel_folder, tmp_path, republish):
    folder = shutil.copytree(channel_folder, tmp_path / "bundle")
    (folder / PARITY).unlink()
    with pytest.raises(BundleError, match="cannot be checked"):
        LoadedBundle.load(republish(folder))
