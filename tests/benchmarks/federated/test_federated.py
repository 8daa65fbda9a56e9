from __future__ import annotations

import numpy as np
import pytest

from benchmarks.federated.federated import MIB, PUBLISHED, changed, main, one_round
from benchmarks.federated.federated_setting import WIDTH, CostSetting, index_sets
from contracts.errors import ConfigError
from federated.privacy.index_policy import POLICIES
from federated.privacy.private_set_union import smallest_code
from federated.rounds.byte_count import predicted
from tests.benchmarks.printed_figures import last_line, refuses
from tests.federated import small_world

TINY = CostSetting().scaled(0.01)


def test_a_round_is_printed_beside_the_published_bytes(capsys):
    main(["--levels", "cpp2", "--scale", "0.01", "--json"])
    text = capsys.readouterr().out
    found = last_line(text)["federated"]
    assert "| 2.33 |" in text  # published
    assert found["mib_per_client_round"]["cpp2"] == found["bytes_per_client_round"]["cpp2"] / 2**20
    assert found["bytes_per_client_round"]["cpp2"] == pytest.approx(
        sum(both["up"] + both["down"] for both in found["bytes_per_phase"]["cpp2"].values()))
    assert found["epsilon"]["cpp2"] > 0
    assert (found["dropouts"], found["dropout_rate"]) == (2, 0.2)
    assert found["seconds_per_round"] == found["seconds_per_round_of"]["cpp2"]
    assert sorted(found) == [
        "auc", "bytes_per_client_round", "bytes_per_phase", "dropout_rate", "dropouts", "epsilon",
        "mib_per_client_round", "of_config", "seconds_per_phase", "seconds_per_round", "seconds_per_round_of"]


@pytest.fixture(scope="module")
def held():
    return index_sets(CostSetting(), 1)


@pytest.mark.parametrize("level", PUBLISHED)
def test_payloads_in_the_papers_setting_are_below_the_published_with_all_signatures(held, level):
    """Of a round that loses nobody, which is more than of one that does."""
    setting, policy = CostSetting(), POLICIES[level]
    union, own = len(np.unique(np.concatenate(held))), float(np.mean([len(rows) for rows in held]))
    rows = union if policy.whole_scope else own * policy.p5 + (union - own) * policy.p6
    payload = predicted(
        code=smallest_code(setting.space, setting.union).size, private=setting.space, union=union, rows=rows,
        dense=setting.dense, width=WIDTH, neighbours=setting.neighbours, clients=setting.clients,
        per_row=level != "cpp5")
    assert sum(map(sum, payload.values())) / MIB < PUBLISHED[level]


def test_without_dropouts_all_finish_and_the_union_is_what_clients_hold():
    cost = one_round(TINY, "cpp5", 0.0, 1)
    assert cost.lost == 0
    assert cost.rows == pytest.approx(cost.union)  # every client names the whole union
    assert cost.epsilon == 0
    assert cost.bytes > cost.formula > 0  # the formula counts payload, the wire its envelope as well


def test_settings_and_masks_are_changed_and_nothing_else():
    config = small_world.config()
    assert changed(config, None, False) == config
    unmasked = changed(config, ["cpp1", "fedavg"], True).federated
    assert (unmasked.settings, unmasked.served, unmasked.masked, unmasked.retrieval) == (
        ("cpp1", "fedavg"), "cpp1", False, False)


def test_a_setting_that_is_none_is_refused():
    with pytest.raises((ConfigError, ValueError), match="cpp9"):
        changed(small_world.config(), ["cpp9"], False)


def test_wrong_options_are_refused():
    assert refuses(main, "--levels", "cpp9")
    assert refuses(main, "--levels", "--auc", "some.toml")  # without --out
