"""Statistics inside a ranker: against look-ups by hand, and with every ranker around them."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from contracts.artifacts import WEIGHTS
from contracts.config.training import PairRates, Train
from contracts.errors import DataError
from contracts.features.feature_spec import FIRST_ID, FeatureSpec, PairModel
from models.examples.batches import FeatureBlock
from models.layers.pair_rate_features import DotHead, MlpHead, PairRateFeatures, build_head
from models.networks import registry
from models.pair_rates import network as pair_network
from models.pair_rates import weights as pair_weights
from models.pair_rates.buckets import memory
from models.training import checkpoint

ROOT = Path(__file__).parents[3]
PAIRS = [("city", "brand"), ("age", "tags")]
TRAIN = Train(embedding_dim=4, hidden=(8,), cross_layers=1, cross_rank=4, dropout=0.0)


def blocks(spec: FeatureSpec, rows: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    random = np.random.default_rng(seed)
    found = []
    for slots in (spec.block_ids("request"), spec.block_ids("candidate")):
        parts = [random.integers(1 if slot.width == 1 else 0, slot.size, (rows, slot.width)) for slot in slots]
        found.append(torch.from_numpy(np.concatenate(parts, axis=1).astype(np.int32)))
    return found[0], found[1]


def random_weights(spec: FeatureSpec, head: str, pairs=PAIRS, **more) -> PairRateFeatures:
    torch.manual_seed(0)
    made = PairRateFeatures(pair_weights.with_pair_rates(spec, pairs, PairModel(head=head, dim=5, **more)),
                          PairModel(head=head, dim=5, **more))
    for parameter in made.parameters():
        torch.nn.init.normal_(parameter)
    made.mean += 0.3
    made.std *= 2.0
    return made


@pytest.mark.parametrize("head", ["dot", "mlp"])
def test_inputs_are_two_look_ups_and_a_head(pair_spec, head):
    made, (request, candidate) = random_weights(pair_spec, head), blocks(pair_spec, 40)
    found = made(request, candidate)
    scorer: Any = made.scorer
    vectors, starts = scorer.vectors, made.starts
    for row in range(40):
        city, brand = int(request[row, 1]) + starts["city"], int(candidate[row, 4]) + starts["brand"]
        expected = (scorer.heads[0](vectors[city], vectors[brand]) - 0.3) / 2
        torch.testing.assert_close(found[row, 0], expected)
        age = int(request[row, 0]) + starts["age"]
        tags = [t + starts["tags"] for t in candidate[row, 1:4].tolist() if t]
        logits = [scorer.heads[1](vectors[age], vectors[tag]) for tag in tags or [starts["tags"]]]
        torch.testing.assert_close(found[row, 1], (torch.stack(logits).mean() - 0.3) / 2)


def counted(pair_spec, pair_graph, strength):
    torch.manual_seed(0)
    network = pair_network.build(PairRates(dim=4), pair_graph).eval()
    return (pair_weights.from_network(network, pair_graph, pair_spec),
            pair_weights.from_network(network, pair_graph, pair_spec, torch.tensor([strength])))


def test_counts_correct_what_the_head_says_and_leave_pairs_never_seen_to_it(pair_spec, pair_graph):
    plain, made = counted(pair_spec, pair_graph, 10.0)
    edges = pair_graph.edges.take(pair_graph.targets)
    city = (edges.left - pair_graph.starts["city"]).numpy()
    brand = (edges.right - pair_graph.starts["brand"]).numpy()
    prior = plain.rates(0, city, brand)
    expected = (edges.clicks.numpy() + 10 * prior) / (edges.exposure.numpy() + 10)
    np.testing.assert_allclose(made.rates(0, city, brand), expected, rtol=1e-4)
    never = np.array([FIRST_ID, 1, 0]), np.array([FIRST_ID, 5, 0])
    np.testing.assert_allclose(made.rates(0, *never), plain.rates(0, *never), rtol=1e-4)
    shares = made(torch.tensor([[2, 2], [2, 3]]), torch.tensor([[0, 0, 0, 0, 2], [0, 0, 0, 0, 2]]))[:, 1]
    assert shares.tolist() == pytest.approx([1.0, 10 / 50])


@pytest.mark.parametrize(("strength", "like_the_head"), [(1e6, True), (1e-3, False)])
def test_the_strength_says_whom_to_believe(pair_spec, pair_graph, strength, like_the_head):
    plain, made = counted(pair_spec, pair_graph, strength)
    edges = pair_graph.edges.take(pair_graph.targets)
    ids = [(rows - pair_graph.starts[slot]).numpy() for rows, slot in ((edges.left, "city"), (edges.right, "brand"))]
    count = (edges.clicks / edges.exposure).numpy()
    np.testing.assert_allclose(made.rates(0, *ids), plain.rates(0, *ids) if like_the_head else count, atol=2e-4)


def test_a_pair_with_more_clicks_than_exposure_has_a_rate_below_1(pair_spec, pair_graph):
    scale = torch.where(torch.arange(len(pair_graph.edges.clicks)) < 10, 0.01, 1.0)
    edges = pair_graph.edges._replace(exposure=pair_graph.edges.exposure * scale)
    _, made = counted(pair_spec, replace(pair_graph, edges=edges), 10.0)
    kept = edges.take(pair_graph.targets)
    ids = [(rows - pair_graph.starts[slot]).numpy() for rows, slot in ((kept.left, "city"), (kept.right, "brand"))]
    assert (kept.clicks > 2 * kept.exposure).any()
    assert made.rates(0, *ids).max() < 0.95


@pytest.mark.parametrize("head", ["dot", "table"])
def test_a_subset_gives_its_columns_and_leaves_the_whole_as_it_was(pair_spec, head):
    made, (request, candidate) = random_weights(pair_spec, head), blocks(pair_spec, 9)
    made.mean += torch.arange(made.width)
    whole = made(request, candidate)
    assert torch.equal(made.subset([1])(request, candidate), whole[:, made.channels:])
    assert torch.equal(made.subset([1, 0]).subset([1])(request, candidate), whole[:, : made.channels])
    assert torch.equal(made(request, candidate), whole)


@pytest.mark.parametrize("head", ["dot", "mlp", "table"])
def test_one_request_row_is_broadcast(pair_spec, head):
    made, (request, candidate) = random_weights(pair_spec, head), blocks(pair_spec, 9)
    torch.testing.assert_close(made(request[:1], candidate), made(request[:1].expand(9, -1), candidate))


def test_half_precision_around_them_leaves_them_alone(pair_spec):
    made, (request, candidate) = random_weights(pair_spec, "mlp"), blocks(pair_spec, 9)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(made(request, candidate), made(request, candidate))
        low = made(request, candidate)
    assert torch.equal(low, made(request, candidate))


def test_a_table_holds_smoothed_rates_and_says_what_it_lacks(pair_spec, pair_graph):
    settings = PairRates(smoothing=10.0)
    made = pair_weights.table(pair_graph, pair_spec, settings)
    edges, prior = pair_graph.edges.take(pair_graph.targets), float(pair_graph.priors[0])
    city = (edges.left - pair_graph.starts["city"]).numpy()
    brand = (edges.right - pair_graph.starts["brand"]).numpy()
    shown, clicks = edges.exposure.numpy(), edges.clicks.numpy()
    np.testing.assert_allclose(made.rates(0, city, brand), (clicks + 10 * prior) / (shown + 10), rtol=1e-5)

    def own(ids, value):
        return (clicks[ids == value].sum() + 10 * prior) / (shown[ids == value].sum() + 10)

    def logit(p):
        return np.log(p / (1 - p))

    missing = np.array([FIRST_ID]), np.array([FIRST_ID])  # city 0 and brand 0: 0 + 0 is a multiple of 4
    expected = logit(own(city, FIRST_ID)) + logit(own(brand, FIRST_ID)) - logit(prior)
    assert logit(made.rates(0, *missing)[0]) == pytest.approx(expected, rel=1e-4)
    assert made.rates(0, np.array([1]), np.array([5]))[0] == pytest.approx(own(brand, 5), rel=1e-4)
    assert made.rates(0, np.array([1]), np.array([1]))[0] == pytest.approx(prior, rel=1e-4)
    flags = made(torch.tensor([[2, 2], [2, 3]]), torch.tensor([[0, 0, 0, 0, 2], [0, 0, 0, 0, 2]]))[:, 1]
    assert flags.tolist() == [1.0, 0.0]


def test_inputs_have_mean_0_and_deviation_1_over_the_window(pair_spec, pair_graph):
    made = pair_weights.table(pair_graph, pair_spec, PairRates())
    edges = pair_graph.edges.take(pair_graph.targets)
    request, candidate = (torch.zeros(len(edges.left), width, dtype=torch.int32) for width in (2, 5))
    request[:, 1], candidate[:, 4] = edges.left - pair_graph.starts["city"], edges.right - pair_graph.starts["brand"]
    inputs = made(request, candidate)[:, 0].numpy()
    weight = edges.exposure.numpy()
    assert np.average(inputs, weights=weight) == pytest.approx(0, abs=1e-4)
    assert np.average(inputs**2, weights=weight) == pytest.approx(1, rel=1e-4)


def published(pair_spec, pair_graph, folder, **chosen):
    settings = PairRates(dim=4, **chosen)
    torch.manual_seed(0)
    network = pair_network.build(settings, pair_graph).eval()
    made = pair_weights.from_network(network, pair_graph, pair_spec)
    spec = pair_weights.publish(made, pair_spec, pair_weights.pairs_of(pair_graph), settings, folder)
    return network, made, spec


def test_the_encoder_is_dropped_and_its_answers_stay(pair_spec, pair_graph, tmp_path):
    network, made, _ = published(pair_spec, pair_graph, tmp_path)
    cities, brands = np.arange(14)[:, None], np.arange(17)[None]
    with torch.no_grad():
        vectors = network.encoder.all_vectors(pair_graph)
        left, right = vectors[pair_graph.starts["city"] + cities], vectors[pair_graph.starts["brand"] + brands]
        expected = torch.sigmoid(network.heads[0](left, right)).numpy()
    np.testing.assert_allclose(made.rates(0, cities, brands), expected, rtol=1e-5)
    assert memory(made, pair_graph).own == 4 * ((14 + 17) * 4 + sum(p.numel() for p in network.heads.parameters())
                                                   + 2)


@pytest.mark.parametrize("name", ["logistic_regression", "dnn", "dcn_v2", "din"])
def test_every_ranker_reads_them_and_keeps_them_frozen(name, pair_spec, pair_graph, tmp_path):
    _, made, spec = published(pair_spec, pair_graph, tmp_path / "s")
    torch.manual_seed(1)
    network: Any = registry.build(name, spec, TRAIN)
    pair_weights.load_into(network, spec, tmp_path / "s")
    for parameter in network.parameters():
        if parameter.requires_grad:
            torch.nn.init.normal_(parameter, std=0.3)
    ids = blocks(spec, 6)
    request, candidate = FeatureBlock(ids[0], torch.zeros(6, 0)), FeatureBlock(ids[1], torch.zeros(6, 1))
    logits = network(request, candidate)
    statistics = network.embedding.pair_rates
    assert torch.equal(statistics.scorer.vectors, made.scorer.vectors)
    assert not any(parameter.requires_grad for parameter in statistics.parameters())
    statistics.mean += 5.0
    assert not torch.allclose(network(request, candidate), logits)
    checkpoint.save(network, tmp_path / "w.safetensors")
    again = registry.build(name, spec, TRAIN)
    checkpoint.load(again, tmp_path / "w.safetensors")
    assert torch.equal(again.eval()(request, candidate), network.eval()(request, candidate))


def test_fine_tuning_and_starting_the_embeddings_at_the_vectors(pair_spec, pair_graph, tmp_path):
    _, made, spec = published(pair_spec, pair_graph, tmp_path, fine_tune=True, initialise_embeddings=True)
    network: Any = registry.build("dnn", spec, TRAIN)
    before = network.embedding.weight.detach().clone()
    pair_weights.load_into(network, spec, tmp_path)
    embedding = network.embedding
    assert all(parameter.requires_grad for parameter in embedding.pair_rates.parameters())
    rows = embedding.request.rows(torch.tensor([[3, 4]], dtype=torch.int32))  # age 3, city 4
    vectors = made.scorer.vectors
    scaled = (vectors - vectors.mean(0)) / vectors.std(0) * 0.1
    torch.testing.assert_close(embedding.weight[rows[0, 1]], scaled[made.starts["city"] + 4])
    assert torch.equal(embedding.weight[rows[0, 0]], before[rows[0, 0]])


@pytest.mark.parametrize("name", ["fives", "factorisation_machine"])
def test_embeddings_with_a_linear_weight_keep_it_when_they_start_at_the_vectors(name, pair_spec, pair_graph, tmp_path):
    _, made, spec = published(pair_spec, pair_graph, tmp_path, initialise_embeddings=True)
    network: Any = registry.build(name, spec, TRAIN)
    pair_weights.load_into(network, spec, tmp_path)
    row = network.embedding.request.rows(torch.tensor([[3, 4]], dtype=torch.int32))[0, 1]  # city 4
    scaled = (made.scorer.vectors - made.scorer.vectors.mean(0)) / made.scorer.vectors.std(0) * 0.1
    start = scaled[made.starts["city"] + 4]
    torch.testing.assert_close(network.embedding.weight[row, : len(start)], start)
    assert network.embedding.weight[row, len(start) :].tolist() == [0.0]


def test_weights_of_another_run_are_refused(pair_spec, pair_graph, tmp_path):
    _, _, spec = published(pair_spec, pair_graph, tmp_path)
    (tmp_path / WEIGHTS).unlink()
    with pytest.raises(DataError, match="sluice pretrain"):
        pair_weights.load_into(registry.build("dnn", spec, TRAIN), spec, tmp_path)


def test_a_spec_without_statistics_is_as_it_was(pair_spec):
    named = pair_weights.with_pair_rates(pair_spec, PAIRS, PairModel(head="dot", dim=3))
    assert [field.name for field in named.pair_rates()] == ["city_x_brand_rate", "age_x_tags_rate"]
    assert [field.cost for field in named.pair_rates()] == [2.0, 2.0]
    assert named.block_ids("candidate") == pair_spec.block_ids("candidate")
    assert named.block_dense("candidate") == pair_spec.block_dense("candidate")
    assert pair_weights.without_pair_rates(named) == pair_spec
    assert FeatureSpec.model_validate_json(named.model_dump_json()) == named


@pytest.mark.slow
def test_a_server_needs_neither_pandas_nor_with_its_check_a_graph_library():
    code = ("import sys, serving.server.server, serving.workers.worker_process; print('pandas' in sys.modules); "
            "import serving.assembly.verify; print('torch_geometric' in sys.modules)")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.split() == ["False", "False"]


@pytest.mark.parametrize("kind", ["dot", "mlp"])
def test_one_left_value_is_broadcast_over_many_right_ones(kind):
    torch.manual_seed(0)
    head = build_head(kind, 5)
    for parameter in head.parameters():
        torch.nn.init.normal_(parameter)
    left, right = torch.randn(1, 5), torch.randn(7, 5)
    one_by_one = torch.stack([head(left[0], row) for row in right])
    torch.testing.assert_close(head(left, right), one_by_one)


def test_dot_is_a_biased_factorisation():
    head = DotHead(3)
    logit = head(torch.tensor([1.0, 2.0, 0.5]), torch.tensor([3.0, -1.0, 0.25]))
    assert logit.item() == pytest.approx(1 * 3 - 2 + 0.5 + 0.25)


def test_an_mlp_learns_what_is_not_bilinear():
    """XOR of the signs in one number each."""
    torch.manual_seed(0)
    left, right = torch.randn(400, 1), torch.randn(400, 1)
    label = ((left > 0) != (right > 0)).float().squeeze(1)
    head = MlpHead(1 + 3)
    widen = torch.nn.functional.pad
    adam = torch.optim.Adam(head.parameters(), lr=0.05)
    for _ in range(300):
        adam.zero_grad()
        logits = head(widen(left, (0, 3)), widen(right, (0, 3)))
        torch.nn.functional.binary_cross_entropy_with_logits(logits, label).backward()
        adam.step()
    assert ((logits > 0) == label.bool()).float().mean() > 0.9
