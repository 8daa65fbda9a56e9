from __future__ import annotations

import pytest

from benchmarks.federated.federated import changed, main, one_round
from benchmarks.federated.federated_setting import CostSetting
from contracts.errors import ConfigError
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
