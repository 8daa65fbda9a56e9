"""A whole small run: figures, restart, and a bundle without a row of any client."""

from __future__ import annotations

import numpy as np
import pyarrow.parquet as pq
import pytest

from contracts.artifacts import Artifacts
from contracts.bundle import bundle
from contracts.bundle.bundle import load_array, load_weights
from contracts.config.federated import FederatedOverrides
from contracts.features.feature_spec import PADDING
from contracts.summaries import summary
from contracts.summaries.federated import FederateSummary
from federated.clients import client_files
from federated.jobs import federate_job
from serving.assembly.assemble import assemble
from serving.bundle.loaded_bundle import LoadedBundle
from serving.request.deadline import Deadline
from serving.request.query import RankQuery
from serving.stages.funnel import Funnel
from tests.federated import small_world


def quiet(text: str, done: int, total: int) -> None:
    pass


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    config = small_world.config(settings=("cpp2", "fedsubavg", "central"), dropout_rate=0.1,
                                overrides={"central": FederatedOverrides(batch_size=100)})
    out = small_world.write(tmp_path_factory.mktemp("run"))
    return config, out, federate_job.federate(config, out, quiet)


@pytest.mark.slow
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
    leak = written.settings["cpp2"].leak
    assert leak is not None
    assert leak.rounds == (1, 2, 3)
    assert 0 < leak.both[-1] < 1
    assert written.settings["central"].leak is None
    assert written.ledger is not None
    assert written.ledger.levels == ("cpp2",)
    assert written.ledger.epsilon_per_row == pytest.approx(2.708, abs=1e-3)  # both settings answer alike


def test_histograms_count_every_later_row_of_every_client(finished):
    _, out, _ = finished
    folder = out.out / "federated"
    later = sum(len(client_files.read_client(folder, n, client_files.LATER).label)
                for n in range(client_files.count(folder)))
    items = pq.read_table(folder / "parts" / "online" / "items")
    assert sum(items.column("_shown").to_pylist()) == later == small_world.ROWS


@pytest.fixture(scope="module")
def published(finished, tmp_path_factory):
    config, out, _ = finished
    folder = tmp_path_factory.mktemp("published")
    made = assemble(federate_job.served_config(config), Artifacts(out.out / "federated" / "parts"), folder / "build")
    bundle.publish(folder / "build", folder / "bundle", "small")
    return made, folder / "bundle"


def test_a_bundle_of_the_parts_computes_what_was_trained_and_knows_no_user(published):
    made, folder = published
    assert made.parity.mismatches == 0
    assert made.users == 0
    assert bundle.verify(folder).files


def test_a_bundle_of_the_parts_holds_no_row_of_any_client(finished, published):
    _, out, _ = finished
    files = [path for path in published[1].rglob("*") if path.is_file()]
    raw = b"".join(path.read_bytes() for path in files)
    assert not any(small_world.key("user", number).encode() in raw for number in range(small_world.USERS))
    folder = out.out / "federated"
    private = [path.read_bytes() for path in folder.glob("clients/*/*.pem")]
    private += [path.read_bytes() for path in folder.glob("memory/*/answers/secret")]
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


def test_the_bundle_is_served_unchanged(published):
    funnel = Funnel(LoadedBundle.load(published[1]))
    query = RankQuery("nobody", 5, {"city": small_world.key("city", 3)}, recent_items=(small_world.key("item", 7),))
    assert len(funnel.rank(query, Deadline(10.0)).items) == 5


@pytest.mark.slow
def test_of_takes_alone_a_probability_is_the_chance_that_the_user_takes_this_item(tmp_path):
    """Clients learn from three rows drawn for each take; what is served adds up to about 1 over all items."""
    config = small_world.config(settings=("cpp2",))
    whole = {"retrieve": {"candidates": 40}, "prerank": {"keep": 40}, "serve": {"max_limit": 40, "parity_rows": 40}}
    config = config.model_validate(config.model_dump() | whole | {
        "label": {"positives_only": True, "negatives": {"per_positive": 3}}})
    out = small_world.write(tmp_path, drawn=3)
    federate_job.federate(config, out, quiet)
    made = assemble(federate_job.served_config(config), Artifacts(out.out / "federated" / "parts"), tmp_path / "build")
    assert made.parity.mismatches == 0
    bundle.publish(tmp_path / "build", tmp_path / "bundle", "takes")
    funnel = Funnel(LoadedBundle.load(tmp_path / "bundle"))
    items = tuple(small_world.key("item", number) for number in range(small_world.ITEMS))
    sums = []
    for city in range(small_world.CITIES):
        query = RankQuery("nobody", len(items), {"city": small_world.key("city", city)}, candidates=items)
        sums.append(sum(item.probability for item in funnel.rank(query, Deadline(10.0)).items))
    assert sums == pytest.approx([1] * small_world.CITIES, abs=0.25)  # 10 among the drawn rows
