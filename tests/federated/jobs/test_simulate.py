"""Runs of one setting: restarts, rounds that cannot be finished, and the same model without masks."""

from __future__ import annotations

import pytest

from contracts.errors import ConfigError, RoundAbandoned
from federated.clients import prepare
from federated.clients.row_space import RowSpace
from federated.jobs import federate_job
from federated.jobs.simulate import kinds, lost_at_random, run_setting, simulate_settings
from federated.protocol.messages import PHASES
from federated.rounds.run_folder import HISTORY, MODEL
from federated.rounds.setting_figures import figures_of
from tests.federated import small_world

WHOLE = "all-union-holders"  # in a private union two holders' words cancel with probability 2^-16; here is none


def quiet(text: str, done: int, total: int) -> None:
    pass


@pytest.mark.slow
def test_a_server_started_again_goes_on_after_the_last_completed_round(tmp_path):
    config = small_world.config(settings=("cpp5",), served="cpp5")
    out = small_world.write(tmp_path / "out")
    folders = [tmp_path / "whole", tmp_path / "halves"]
    for folder in folders:
        prepare.prepare(config, out, folder)
    whole = run_setting("cpp5", config, out, folders[0], quiet)
    sent = [figures_of(whole, config, folders[0]).bytes_per_client_round]
    short = config.model_copy(update={"federated": config.federated.model_copy(update={"rounds": 2})})
    run_setting("cpp5", short, out, folders[1], quiet)
    again = run_setting("cpp5", config, out, folders[1], quiet)
    assert (again.rows == whole.rows).all()
    assert len(again.history) == 3
    sent.append(figures_of(again, config, folders[1]).bytes_per_client_round)
    assert sent[0] == pytest.approx(sent[1], rel=1e-3)


def test_a_round_that_cannot_be_finished_changes_nothing(tmp_path):
    config = small_world.config(settings=("cpp5",), served="cpp5", dropout_rate=0.9)
    out = small_world.write(tmp_path / "out")
    prepare.prepare(config, out, tmp_path / "federated")
    with pytest.raises(RoundAbandoned, match="5 rounds in a row"):
        run_setting("cpp5", config, out, tmp_path / "federated", quiet)
    assert not (tmp_path / "federated" / "runs" / "cpp5" / MODEL).exists()
    assert not (tmp_path / "federated" / "runs" / "cpp5" / HISTORY).exists()


@pytest.mark.slow
def test_without_masks_the_model_is_the_same_and_nothing_may_be_served(tmp_path):
    config, out = small_world.config(settings=(WHOLE,), served=WHOLE), small_world.write(tmp_path / "out")
    open_ = config.model_copy(update={"federated": config.federated.model_copy(update={"masked": False})})
    made = {}
    for name, one in (("masked", config), ("open", open_)):
        prepare.prepare(one, out, tmp_path / name)
        made[name] = run_setting(WHOLE, one, out, tmp_path / name, quiet)
    assert (made["masked"].rows == made["open"].rows).all()
    assert (made["masked"].dense == made["open"].dense).all()
    with pytest.raises(ConfigError, match="masked is false"):
        federate_job.federate(open_, out, quiet)


@pytest.mark.slow
def test_heads_of_their_own_are_counted_when_the_rounds_are_done_and_train_nothing_anew(tmp_path):
    """Whoever wants them after the rounds gets them for the model that is there."""
    config, out = small_world.config(settings=("cpp5", "central"), served="cpp5"), small_world.write(tmp_path / "out")
    steps = config.model_copy(update={"federated": config.federated.model_copy(update={"personal_steps": 5})})
    found = []
    for one in (config, steps):
        prepare.prepare(one, out, tmp_path / "federated")
        found.append(simulate_settings(one, out, tmp_path / "federated", quiet, wire=False))
    without, with_heads = found
    assert without["cpp5"].personal is with_heads["central"].personal is None
    personal = with_heads["cpp5"].personal
    assert personal is not None
    assert personal.auc != personal.auc_common
    assert with_heads["cpp5"].history == without["cpp5"].history


def test_a_client_is_lost_in_a_round_as_often_as_configured():
    lose = lost_at_random(small_world.config(dropout_rate=0.3))
    rounds = [any(lose(phase, 0) for phase in PHASES) for _ in range(4000)]
    assert sum(rounds) / len(rounds) == pytest.approx(0.3, abs=0.04)
    never = lost_at_random(small_world.config())
    assert not any(never("train", 0) for _ in range(100))


def test_clients_come_together_by_a_field_of_their_first_row(tmp_path):
    config, out = small_world.config(availability_by="city"), small_world.write(tmp_path / "out")
    prepare.prepare(config, out, tmp_path / "federated")
    space = RowSpace(prepare.federated_spec(config, small_world.spec()), 10)
    found = kinds(config, space, tmp_path / "federated")
    assert len(found) == small_world.USERS
    assert len(set(found)) == small_world.CITIES
    assert kinds(small_world.config(), space, tmp_path / "federated") == list(range(small_world.USERS))
    with pytest.raises(ConfigError, match="no field of the clients' rows"):
        kinds(small_world.config(availability_by="shoe_size"), space, tmp_path / "federated")
