from __future__ import annotations

from contracts.config.config import Config
from sluice.run.jobs import skipped


def config(**roles: str) -> Config:
    return Config.model_validate({
        "name": "t", "log": {"path": "log", **roles}, "label": {"expression": "y"},
        "fields": [{"name": "x", "kind": "categorical", "side": "context"}],
    })


def test_each_missing_role_leaves_out_what_needs_it() -> None:
    plain = skipped(config())
    assert set(plain) == {
        "split_in_time", "gauc", "online_users", "online_items", "two_tower", "pre_ranker", "item_index", "serving",
        "prerank", "pair_rates",
    }
    assert set(skipped(config(event_time="t", item_id="i"))) == {"gauc", "online_users", "pair_rates"}
    assert set(skipped(config(user_id="u", item_id="i"))) == {"split_in_time", "prerank", "pair_rates"}
    assert all("set log." in reason for name, reason in plain.items() if name != "pair_rates")


def test_a_full_log_leaves_out_the_pairs_alone_that_nobody_named() -> None:
    full = config(event_time="t", item_id="i", user_id="u")
    assert set(skipped(full)) == {"pair_rates"}
    paired = full.model_copy(update={"pair_rates": full.pair_rates.model_copy(update={"pairs": (("x", "y"),)})})
    assert skipped(paired) == {}
    switched_off = paired.model_copy(update={"pair_rates": paired.pair_rates.model_copy(update={"model": "none"})})
    assert "set it to pcf_gnn" in skipped(switched_off)["pair_rates"]
