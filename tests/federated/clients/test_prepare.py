"""What clients are made of: fields that each can compute, and what stays when a run is prepared again."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from contracts.config.federated import FederatedOverrides
from contracts.errors import ConfigError
from federated.clients import client_files, prepare
from federated.clients.prepare import federated_spec
from federated.privacy.randomized_response import FirstAnswers
from federated.rounds.public_setup import public_setup
from tests.federated import small_world


def test_the_users_identity_is_refused():
    config = small_world.config(fields=("user", "item"))
    with pytest.raises(ConfigError, match="identity"):
        federated_spec(config, small_world.spec())


@pytest.mark.parametrize("side", ["user", "context"])
def test_the_users_identity_is_no_field_whatever_its_side(side):
    config = small_world.config(fields=("user", "item"))
    spec = small_world.spec()
    moved = spec.model_copy(update={"fields": tuple(
        field.model_copy(update={"side": side}) if field.name == "user" else field for field in spec.fields)})
    with pytest.raises(ConfigError, match="'user' is made of the user's identity"):
        prepare.federated_spec(config, moved)


def test_identities_outlive_another_learning_rate_but_not_other_clients(tmp_path):
    out, folder = small_world.write(tmp_path / "out"), tmp_path / "federated"

    def of(**changes):
        prepare.prepare(small_world.config(settings=("cpp2",), served="cpp2", **changes), out, folder)
        (folder / "runs").mkdir(exist_ok=True)
        return client_files.identities(folder), list((folder / "runs").iterdir())

    first = of()
    (folder / "runs" / "cpp2").mkdir()
    assert of()[0] == first[0]
    assert (folder / "runs" / "cpp2").exists()
    assert of(learning_rate=0.7) == first
    assert of(population=20)[0] != first[0]


def all_answers(folder):
    """Secret of a user -> what it answers about every item, by the item's name."""
    setup = public_setup(folder, "cpp2")
    start, policy = setup.space.private_tables.index("item"), setup.plan.policy
    at = sum(stop - first for first, stop in setup.space.private_ranges()[:start])
    asked, found = np.arange(at, at + small_world.ITEMS), {}
    for number in range(client_files.count(folder)):
        answers = FirstAnswers(client_files.memory(folder, number) / "answers", setup.names)
        held = np.isin(setup.plan.private_places, setup.space.held(client_files.read_client(folder, number)))
        secret = (client_files.memory(folder, number) / "answers" / "secret").read_bytes()
        found[secret] = answers.answers(asked, held, policy).tolist()
    return found


def test_answers_given_once_are_given_again_by_the_next_days_run_in_another_folder(tmp_path):
    """Redrawn every day, they would cost their epsilon every day."""
    config, memory = small_world.config(), tmp_path / "memory"
    found = []
    for day, changes in (("monday", {}), ("tuesday", {"public_up_to": 9}), ("wednesday", {"population": 25})):
        one = config.model_copy(update={"federated": config.federated.model_copy(update=changes)})
        prepare.prepare(one, small_world.write(tmp_path / day), tmp_path / day / "federated", memory)
        found.append(all_answers(tmp_path / day / "federated"))
    assert found[0] == found[1]
    assert len(found[2]) == 25
    assert found[2].items() <= found[0].items()


def test_a_run_in_place_keeps_answers_when_its_clients_change(tmp_path):
    out, folder = small_world.write(tmp_path / "out"), tmp_path / "federated"
    prepare.prepare(small_world.config(), out, folder)
    before = all_answers(folder)
    prepare.prepare(small_world.config(population=20), out, folder)
    assert all_answers(folder).items() <= before.items()


def test_more_rounds_of_one_setting_keep_what_was_trained(tmp_path):
    out, folder = small_world.write(tmp_path / "out"), tmp_path / "federated"
    for overrides, kept in (({"rounds": 5}, True), ({"rounds": 9}, True), ({"learning_rate": 0.7}, False)):
        (folder / "runs" / "cpp2").mkdir(parents=True, exist_ok=True)
        prepare.prepare(small_world.config(overrides={"cpp2": FederatedOverrides(rounds=1)}), out, folder)
        (folder / "runs" / "cpp2").mkdir(parents=True, exist_ok=True)
        prepare.prepare(small_world.config(overrides={"cpp2": FederatedOverrides(**overrides)}), out, folder)
        assert (folder / "runs").exists() == kept


@pytest.mark.parametrize("window", ["train", "validation", "test"])
def test_other_labels_and_other_rows_begin_training_anew_and_equal_ones_do_not(tmp_path, window):
    """Whatever the bytes of the files are that the rows lie in."""
    out, folder = small_world.write(tmp_path / "out"), tmp_path / "federated"
    part = out.examples(window) / "day=2026-01-01" / "part.parquet"
    rows = pq.read_table(part)
    turned = pa.array(1 - rows["_label"].to_numpy())
    label = rows.set_column(rows.schema.get_field_index("_label"), "_label", turned)
    city = pa.array(np.roll(rows["city"].to_numpy(), 1))
    moved = label.set_column(rows.schema.get_field_index("city"), "city", city)
    keys = None
    for table, compression, kept in ((rows, "snappy", False), (rows, "gzip", True), (label, "gzip", False),
                                     (moved, "gzip", False), (moved, "snappy", True)):
        pq.write_table(table, part, compression=compression)
        prepare.prepare(small_world.config(), out, folder)
        assert (folder / "runs").exists() == kept
        (folder / "runs").mkdir(exist_ok=True)
        keys = keys or client_files.identities(folder)
        assert client_files.identities(folder) == keys


def test_a_client_has_its_latest_rows_up_to_the_limit_and_nobody_elses(tmp_path):
    out, folder = small_world.write(tmp_path / "out"), tmp_path / "federated"
    clients = prepare.prepare(small_world.config(), out, folder)
    whole = [client_files.read_client(folder, number) for number in range(clients)]
    assert clients == small_world.USERS
    assert sum(len(batch.label) for batch in whole) == small_world.ROWS
    prepare.prepare(small_world.config(max_samples=5), out, folder)
    for number, batch in enumerate(whole):
        latest = client_files.read_client(folder, number)
        assert (latest.candidate.ids == batch.candidate.ids[-5:]).all()
        assert not latest.user.any()
        assert len(client_files.read_client(folder, number, client_files.LATER).label) <= 5


def test_fewer_users_than_a_round_has_clients_are_refused(tmp_path):
    with pytest.raises(ConfigError, match="the log has 30 users"):
        prepare.prepare(small_world.config(clients=31), small_world.write(tmp_path / "out"), tmp_path / "federated")


@pytest.mark.parametrize("way", ["popularity", "candidates"])
def test_rows_not_drawn_every_item_alike_are_refused_because_no_client_knows_how_often(tmp_path, way):
    config = small_world.config()
    config = config.model_validate(config.model_dump() | {
        "label": {"positives_only": True, "negatives": {way: 0.5}}})
    with pytest.raises(ConfigError, match=f"{way} is 0.5(?s:.*)set it to 0 for federated training"):
        prepare.prepare(config, small_world.write(tmp_path / "out", drawn=4), tmp_path / "run")


def test_all_rows_together_are_those_of_the_clients(tmp_path):
    prepare.prepare(small_world.config(population=9), small_world.write(tmp_path / "out"), tmp_path / "federated")
    each = [client_files.read_client(tmp_path / "federated", number) for number in range(9)]
    pooled = prepare.pooled(tmp_path / "federated")
    assert len(pooled.label) == sum(len(batch.label) for batch in each)
    assert pooled.label.sum() == sum(batch.label.sum() for batch in each)
