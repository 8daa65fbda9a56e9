"""The ServerApp's part around the rounds; the rounds over Flower's own processes are in test_flower_runs.py."""

from __future__ import annotations

import shutil
import time
from types import SimpleNamespace

import pyarrow.parquet as pq
import pytest
from flwr.app import Context, RecordDict

from contracts.artifacts import Artifacts
from contracts.errors import DataError, FederatedError
from contracts.summaries import summary
from contracts.summaries.federated import ServerAppSummary
from federated.clients import client_files, prepare
from federated.clients.availability import of_config
from federated.clients.personal_head import HEADS
from federated.flower import server_app
from federated.flower.client_app import app as client_app
from federated.flower.in_process_grid import InProcessGrid
from federated.flower.seats import Seats
from federated.flower.server_app import main, started, wait_for_clients
from federated.flower.stragglers import Closing
from federated.jobs.federate_job import deployed_parts
from federated.rounds.public_setup import public_setup
from federated.rounds.settings import HISTOGRAMS, SCORES
from tests.federated import small_world


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("prepared")
    config = small_world.config(clients=4, population=6, neighbours=4, settings=("cpp5", "fedlaavg"), served="cpp5")
    prepare.prepare(config, small_world.write(folder / "out"), folder / "federated")
    return folder / "federated"


def grid_of(folder, setting):
    nodes = {node + 70: node for node in range(6)}
    return InProcessGrid(client_app, nodes, {"folder": str(folder), "setting": setting})


def seats_of(folder, setting):
    return Seats(grid_of(folder, setting), client_files.identities(folder), Closing())


def test_rounds_go_over_whatever_nodes_there_are_and_are_summed_up(folder):
    settings: dict[str, str | int | float | bool] = {"folder": str(folder), "setting": "cpp5", "rounds": 2, "nodes": 6}
    main(grid_of(folder, "cpp5"), Context(1, 1, {}, RecordDict(), settings))
    written = summary.required(folder / "runs" / "cpp5-flower", ServerAppSummary, "flwr run .")
    assert written.rounds == 2
    assert [entry.clients for entry in written.history] == [6, 6]  # six nodes are one cohort of at least four
    assert written.best_round == 2
    assert written.auc_validation == written.history[1].auc_validation
    assert written.auc_by_cohort == (written.auc_validation,)
    assert written.predicted_over_observed == pytest.approx(1, abs=0.5)
    assert written.predicted_over_observed_by_cohort == (written.predicted_over_observed,)
    assert written.bytes_per_client_round == pytest.approx(
        sum(sent.up + sent.down for sent in written.bytes_per_phase.values()))
    assert (written.epsilon, written.single_holder_seen, written.epsilon_noise) == (0.0, 0.0, None)
    assert written.warnings == ()


@pytest.mark.slow
def test_items_are_counted_once_when_the_rounds_are_done(folder, tmp_path, monkeypatch):
    """Rounds in between add up scores alone: who comes or goes between two of them tells nothing of its items by it."""
    own, asked = tmp_path / "federated", list[str]()
    shutil.copytree(folder, own, symlinks=True, ignore=shutil.ignore_patterns("runs"))
    counting = server_app.count_scores

    def noted(setup, *rest):
        asked.append(setup.setting)
        return counting(setup, *rest)

    monkeypatch.setattr(server_app, "count_scores", noted)
    settings: dict[str, str | int | float | bool] = {"folder": str(own), "setting": "cpp5", "rounds": 4, "nodes": 6}
    main(grid_of(own, "cpp5"), Context(1, 1, {}, RecordDict(), settings))
    assert asked == [SCORES, SCORES, HISTOGRAMS]


def test_clients_keep_heads_of_their_own_where_the_configuration_says_so(folder, tmp_path):
    """The rounds train a ranker alone: there is nothing else to count."""
    own = tmp_path / "federated"
    config = small_world.config(clients=4, population=6, neighbours=4, settings=("cpp5",), served="cpp5",
                                retrieval=False, personal_steps=3)
    prepare.prepare(config, Artifacts(folder.parent / "out"), own)
    settings: dict[str, str | int | float | bool] = {"folder": str(own), "setting": "cpp5", "rounds": 1, "nodes": 6}
    main(grid_of(own, "cpp5"), Context(1, 1, {}, RecordDict(), settings))
    written = summary.required(own / "runs" / "cpp5-flower", ServerAppSummary, "flwr run .")
    assert written.personal is not None
    assert written.personal.rows == sum(
        len(client_files.read_client(own, number, client_files.LATER).label) for number in range(6))
    assert written.personal.auc != written.personal.auc_common
    assert len(list(own.glob(f"clients/*/{HEADS}/*"))) == 6
    assert written.auc_by_cohort == ()


def test_what_was_deployed_becomes_parts_of_a_bundle(folder):
    """The item table and the vocabularies lie beside the prepared folder, on the server."""
    config = small_world.config(clients=4, population=6, neighbours=4, settings=("cpp5", "fedlaavg"), served="cpp5")
    out = Artifacts(folder.parent / "out")
    (folder.parent / "out" / "federated").symlink_to(folder)
    parts = deployed_parts(config, out, "cpp5")
    assert (parts.model("din") / "weights.safetensors").exists()
    later = sum(len(client_files.read_client(folder, number, client_files.LATER).label) for number in range(6))
    shown = pq.read_table(parts.online_items).column("_shown").to_pylist()
    assert 0 < sum(shown) <= later
    with pytest.raises(DataError, match="writes it at its end"):
        deployed_parts(config, out, "fedlaavg")


def test_holders_are_counted_before_the_first_round_where_the_averaging_divides_by_them(folder, tmp_path):
    laavg = started(public_setup(folder, "fedlaavg"), seats_of(folder, "fedlaavg"), tmp_path)
    assert laavg.latest is not None
    assert laavg.latest.holders.min() >= 1
    assert laavg.latest.holders.max() == 6
    assert started(public_setup(folder, "cpp5"), seats_of(folder, "cpp5"), tmp_path).heat is None


def test_nodes_are_waited_for_and_too_few_are_refused(folder):
    assert wait_for_clients(seats_of(folder, "cpp5"), 6, seconds=0.0) == list(range(6))
    with pytest.raises(FederatedError, match="nodes of 6 clients are connected and 7 are wanted"):
        wait_for_clients(seats_of(folder, "cpp5"), 7, seconds=0.0)


@pytest.mark.slow
def test_a_deployment_follows_the_availability_of_its_configuration(folder, tmp_path):
    config = small_world.config(clients=4, population=6, neighbours=4, settings=("cpp5", "fedlaavg"), served="cpp5",
                                availability="alternating", availability_period=4)
    pattern, came = of_config(config.federated, list(range(6)), config.seed), list[set[int]]()
    for setting in ("cpp5", "fedlaavg"):
        training = started(public_setup(folder, setting, config), seats_of(folder, setting), tmp_path / setting)
        training.on_opened = lambda opened: came.append(set(opened.finished))
        training.run(4, lambda rows, dense: {}, 9, lambda entry: None)
    expected = [set(pattern(number)) for number in range(1, 5)]
    assert came == 2 * expected
    assert expected[0] != expected[2]


@pytest.mark.slow
def test_nodes_start_anew_under_other_ids_join_and_leave_between_rounds(folder, tmp_path):
    """Clients keep their numbers, so FedLaAvg knows whose upload it has, and cohorts stay what they are."""
    seats = seats_of(folder, "fedlaavg")
    grid = seats.grid
    first = grid.contexts.pop(75)  # client 5 is not there yet
    training = started(public_setup(folder, "fedlaavg"), seats, tmp_path)
    training.run(2, lambda rows, dense: {}, 9, lambda entry: None)
    assert training.latest is not None
    seen = training.latest.accepted.copy()
    assert (seen > 0).tolist() == [True] * 5 + [False]
    left = grid.contexts.pop(70)
    grid.contexts = {300 - node: context for node, context in grid.contexts.items()} | {40: first}
    for node, context in grid.contexts.items():
        context.node_id = node
    training.run(5, lambda rows, dense: {}, 9, lambda entry: None)
    assert [entry.lost for entry in training.history] == [{}] * 5
    assert training.latest.accepted[0] == seen[0]
    assert (training.latest.accepted[1:] > seen[1:]).all()
    assert left.node_config["partition-id"] == 0


def leaving(monkeypatch, grid, nodes):
    """These nodes are no longer there from the first look after the first round's union is opened."""
    asked, ids = set[str](), grid.get_node_ids

    def lose(phase, node):
        asked.add(phase)
        return False

    def there():
        if "open_union" in asked:
            for node in nodes:
                grid.contexts.pop(node, None)
        return ids()

    monkeypatch.setattr(grid, "lose", lose)
    monkeypatch.setattr(grid, "get_node_ids", there)


def test_a_node_that_leaves_in_the_middle_of_a_round_is_lost_in_it_and_stops_no_run(folder, tmp_path, monkeypatch):
    """Who is there is looked up while the question is on its way that was made for those who were there before."""
    seats = seats_of(folder, "cpp5")
    leaving(monkeypatch, seats.grid, [71])
    training = started(public_setup(folder, "cpp5"), seats, tmp_path)
    training.run(3, lambda rows, dense: {}, 9, lambda entry: None)
    assert [entry.clients for entry in training.history] == [5, 5, 5]
    assert [entry.lost for entry in training.history] == [{"choose": 1}, {}, {}]


def test_a_node_that_leaves_before_an_evaluation_is_lost_in_the_round_that_is_prepared(folder, tmp_path):
    seats = seats_of(folder, "cpp5")
    training = started(public_setup(folder, "cpp5"), seats, tmp_path)

    def evaluate(rows, dense):
        seats.grid.contexts.pop(71, None)
        seats.there()
        return {}

    training.run(3, evaluate, 1, lambda entry: None)
    assert [entry.clients for entry in training.history] == [6, 5, 5]
    assert [sum(entry.lost.values()) for entry in training.history] == [0, 1, 0]


def test_nodes_are_not_waited_for_in_the_middle_of_a_round(folder, tmp_path, monkeypatch):
    """Two of six are left when the next round would be prepared: it is not, and this one goes on to its own end."""
    seats, phases, waited_after = seats_of(folder, "cpp5"), list[str](), list[str]()
    leaving(monkeypatch, seats.grid, [72, 73, 74, 75])
    training = started(public_setup(folder, "cpp5"), seats, tmp_path)
    exchange = training.exchange

    def noted(phase, messages):
        phases.append(phase)
        return exchange(phase, messages)

    training.exchange = noted

    def waits(seconds):
        waited_after.append(phases[-1])
        raise FederatedError("nobody comes")

    monkeypatch.setattr(server_app, "time", SimpleNamespace(monotonic=time.monotonic, sleep=waits))
    with pytest.raises(FederatedError, match="nobody comes"):
        training.run(2, lambda rows, dense: {}, 9, lambda entry: None)
    assert waited_after == ["choose"]  # when the attempt was abandoned, before the next one
