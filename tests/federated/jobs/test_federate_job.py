"""A whole small run: figures, restart, and a bundle without a row of any client."""

from __future__ import annotations

import os

import numpy as np
import pyarrow.parquet as pq
import pytest

from contracts.artifacts import Artifacts
from contracts.bundle import bundle
from contracts.bundle.bundle import load_array, load_weights
from contracts.errors import ConfigError, RoundAbandoned
from contracts.features.feature_spec import PADDING
from contracts.summaries import summary
from contracts.summaries.federated import FederateSummary
from federated.clients import client_files, prepare
from federated.flower.client_app import app
from federated.flower.flower_exchange import FlowerExchange
from federated.flower.in_process_grid import InProcessGrid
from federated.jobs import federate_job
from federated.jobs.simulate import run_setting
from federated.protocol.byte_count import ByteCount
from federated.rounds.setting_figures import figures_of
from federated.rounds.training import HISTORY, MODEL
from serving.assembly.assemble import assemble
from serving.bundle.loaded_bundle import LoadedBundle
from serving.request.deadline import Deadline
from serving.request.query import RankQuery
from serving.stages.funnel import Funnel
from tests.federated import small_world

WHOLE = "all-union-holders"  # in a private union two holders' words cancel with probability 2^-16; here is none


def quiet(text: str, done: int, total: int) -> None:
    pass


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    config = small_world.config(settings=("cpp2", "fedsubavg", "central"), dropout_rate=0.1)
    out = small_world.write(tmp_path_factory.mktemp("run"))
    return config, out, federate_job.federate(config, out, quiet)


def test_the_summary_says_what_the_run_cost_and_reached(finished):
    _, out, found = finished
    written = summary.required(out.out / "federated", FederateSummary, "sluice federate")
    assert written == found
    figures = written.federated
    assert figures.auc.keys() == {"cpp2", "fedsubavg", "central"}
    assert figures.epsilon["cpp2"] == pytest.approx(2.708, abs=1e-3)
    composed, once, kept = (of["cpp2"] for of in (figures.epsilon_composed, figures.epsilon, figures.kept))
    assert composed is not None
    assert once is not None
    assert kept is not None
    assert composed > once
    assert figures.seconds_per_round > 0
    assert figures.dropouts > 0
    assert 0 < figures.bytes_by_formula["cpp2"] < figures.bytes_per_client_round["cpp2"]
    assert [entry.round for entry in written.settings["cpp2"].history] == [1, 2, 3]
    assert 0.5 < kept < 1


def test_histograms_count_every_later_row_of_every_client(finished):
    _, out, _ = finished
    folder = out.out / "federated"
    later = sum(len(client_files.read_client(folder, n, client_files.LATER).label)
                for n in range(client_files.count(folder)))
    items = pq.read_table(folder / "parts" / "online" / "items")
    assert sum(items.column("_shown").to_pylist()) == later == small_world.ROWS


def test_a_bundle_of_the_parts_holds_no_row_of_any_client(finished, tmp_path):
    config, out, _ = finished
    parts = Artifacts(out.out / "federated" / "parts")
    found = assemble(federate_job.served_config(config), parts, tmp_path / "build")
    assert found.parity.mismatches == 0
    assert found.users == 0
    manifest = bundle.publish(tmp_path / "build", tmp_path / "bundle", "small")
    assert manifest.files
    files = [path for path in (tmp_path / "bundle").rglob("*") if path.is_file()]
    raw = b"".join(path.read_bytes() for path in files)
    assert not any(small_world.key("user", number).encode() in raw for number in range(small_world.USERS))
    folder = out.out / "federated"
    private = [path.read_bytes() for path in folder.glob("clients/*/*.pem")]
    private += [path.read_bytes() for path in folder.glob("clients/*/answers/secret")]
    assert len(private) == 2 * client_files.count(folder)
    assert not any(secret in raw for secret in private)
    histories = {row.tobytes() for n in range(client_files.count(folder))
                 for file in (client_files.SAMPLES, client_files.LATER)
                 for row in client_files.read_client(folder, n, file).request.ids.numpy().astype(np.int64)[
                     :, : small_world.HISTORY] if (row > PADDING).all()}
    assert len(histories) > small_world.ROWS / 2
    assert histories & set.union(*map(windows, out.examples("train").rglob("*.parquet")))  # would be found
    by_chance = len(histories) / 100  # a list of an item's neighbours may happen to read like one
    assert len(histories & set.union(*map(windows, files))) < by_chance


def windows(path):
    """All stretches of a history's length in the rows of the integer matrices of a file."""
    width = small_world.HISTORY
    return {np.ascontiguousarray(row[at : at + width]).astype(np.int64).tobytes()
            for array in arrays_of(path) for row in array for at in range(array.shape[1] - width + 1)}


def arrays_of(path):
    if path.suffix == ".npy":
        found = [load_array(path)]
    elif path.suffix == ".safetensors":
        found = list(load_weights(path).values())
    elif path.suffix == ".parquet":
        columns = pq.read_table(path).to_pydict()
        found = [np.array(column) for column in columns.values()
                 if len({len(value) if isinstance(value, list) else -1 for value in column}) == 1]
    else:
        found = []
    return [array for array in found if array.ndim == 2 and array.dtype.kind in "iu" and array.size]


@pytest.mark.parametrize("side", ["user", "context"])
def test_the_users_identity_is_no_field_whatever_its_side(side):
    config = small_world.config(fields=("user", "item"))
    spec = small_world.spec()
    moved = spec.model_copy(update={"fields": tuple(
        field.model_copy(update={"side": side}) if field.name == "user" else field for field in spec.fields)})
    with pytest.raises(ConfigError, match="'user' is made of the user's identity"):
        prepare.federated_spec(config, moved)


def test_first_answers_and_identities_outlive_another_learning_rate_but_not_other_clients(tmp_path):
    out, folder = small_world.write(tmp_path / "out"), tmp_path / "federated"

    def of(**changes):
        prepare.prepare(small_world.config(settings=("cpp2",), served="cpp2", **changes), out, folder)
        secret = client_files.client(folder, 2) / "answers" / "secret"
        secret.parent.mkdir(exist_ok=True)
        secret.write_bytes(secret.read_bytes() if secret.exists() else os.urandom(32))
        (folder / "runs").mkdir(exist_ok=True)
        return client_files.identities(folder), secret.read_bytes(), list((folder / "runs").iterdir())

    first = of()
    (folder / "runs" / "cpp2").mkdir()
    assert of()[:2] == first[:2]
    assert (folder / "runs" / "cpp2").exists()
    assert of(learning_rate=0.7) == first
    assert of(population=20)[:2] != first[:2]


def test_the_bundle_is_served_unchanged(finished, tmp_path):
    config, out, _ = finished
    assemble(federate_job.served_config(config), Artifacts(out.out / "federated" / "parts"), tmp_path / "build")
    bundle.publish(tmp_path / "build", tmp_path / "bundle", "small")
    funnel = Funnel(LoadedBundle.load(tmp_path / "bundle"))
    query = RankQuery("nobody", 5, {"city": small_world.key("city", 3)}, recent_items=(small_world.key("item", 7),))
    assert len(funnel.rank(query, Deadline(10.0)).items) == 5


def test_a_node_answers_no_setting_without_masks_unless_it_is_told_to(tmp_path):
    """Whoever starts a run names the setting, and baselines are among those of a configuration."""
    config = small_world.config(settings=("cpp5", "fedavg", "central"), served="cpp5")
    prepare.prepare(config, small_world.write(tmp_path / "out"), tmp_path / "federated")
    for setting, answered in (("cpp5", True), ("fedavg", False), ("central", False)):
        heard: list[str] = []
        grid = InProcessGrid(app, {0: 0}, {"folder": str(tmp_path / "federated"), "setting": setting})
        exchange = FlowerExchange(grid, [0], None, ByteCount(), heard.append)
        replies = exchange("keys", {0: {"round": np.array(5, np.int64), "clients": np.array(9, np.int32)}})
        assert bool(replies) == answered
        assert answered or "has no masks" in heard[0]
    config, out = small_world.config(settings=("fedavg",), served="fedavg", rounds=1), Artifacts(tmp_path / "out")
    prepare.prepare(config, out, tmp_path / "alone")
    assert len(run_setting("fedavg", config, out, tmp_path / "alone", quiet).history) == 1


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
