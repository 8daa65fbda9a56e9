from __future__ import annotations

import numpy as np
import pytest

from contracts.errors import DataError
from models.interactions.given_split import Pairs, given_split, pairs_of_lines

RANDOM = np.random.default_rng(0)
TRAIN = Pairs(RANDOM.integers(0, 30, 600), RANDOM.integers(100, 150, 600))
TEST = Pairs(RANDOM.integers(5, 35, 90), RANDOM.integers(100, 160, 90))


def pairs(log, keys):
    return sorted(zip(log.owners.tolist(), keys[log.items - 2].tolist(), strict=True))


def test_both_files_are_kept_apart_and_nothing_is_lost():
    split = given_split(TRAIN, TEST)
    keys = np.unique(np.concatenate([TRAIN.items, TEST.items]))
    users = np.unique(np.concatenate([TRAIN.users, TEST.users]))
    for found, given in ((split.test.history, TRAIN), (split.test.targets, TEST)):
        expected = sorted(zip(np.searchsorted(users, given.users).tolist(), given.items.tolist(), strict=True))
        assert pairs(found, keys) == expected


def test_a_tenth_validates_and_every_trained_user_keeps_an_action():
    split = given_split(TRAIN, TEST)
    assert split.validation.history is split.train
    whole = split.test.history
    assert len(split.train.items) + len(split.validation.targets.items) == len(whole.items)
    assert 0.05 < len(split.validation.targets.items) / len(whole.items) < 0.15
    assert ((split.train.lengths > 0) == (whole.lengths > 0)).all()


def test_an_empty_part_is_refused():
    with pytest.raises(DataError, match="600 training actions and 0 of test"):
        given_split(TRAIN, Pairs(TEST.users[:0], TEST.items[:0]))


def test_lines_are_read_as_pairs(tmp_path):
    (tmp_path / "train.txt").write_text("7 10 11\n3 11\n9\n")
    found = pairs_of_lines(tmp_path / "train.txt")
    assert (found.users.tolist(), found.items.tolist()) == ([7, 7, 3], [10, 11, 11])
