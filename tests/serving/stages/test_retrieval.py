from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest
import torch

from contracts.config.stages import Retrieve
from serving.bundle.channel import CountChannel, VectorChannel
from serving.bundle.loaded_bundle import LoadedBundle
from serving.request.candidates import CHANNELS
from serving.request.deadline import Deadline
from serving.request.query import RankQuery
from serving.request.request_features import Requester, RequestFeatures, block
from serving.stages.retrieval import RetrievalStage, Retrieved


def with_quotas(bundle: LoadedBundle, **quotas: int | bool | str | dict[str, dict[str, int]]) -> LoadedBundle:
    retrieve = Retrieve.model_validate({**bundle.settings.retrieve.model_dump(), **quotas})
    return replace(bundle, settings=bundle.settings.model_copy(update={"retrieve": retrieve}))


def retrieve(
    bundle: LoadedBundle, user: str = "u04", by_value: bool = True, **query: object
) -> tuple[Requester, np.ndarray, Retrieved]:
    asked = RankQuery(user, 5, **query)  # type: ignore[arg-type]
    requester = RequestFeatures(bundle).requester(asked)
    with torch.inference_mode():
        vector = bundle.towers.user_vector(block(requester.inputs))[0].numpy()
    return requester, vector, RetrievalStage(bundle).run(asked, requester, vector, by_value)


def rows_of(found: Retrieved, channel: str) -> list[int]:
    candidates = found.candidates
    return candidates.rows[candidates.channels == CHANNELS.index(channel)].tolist()


@pytest.mark.parametrize("by_value", [True, False])
def test_two_towers_against_a_plain_sort(loaded: LoadedBundle, by_value: bool) -> None:
    requester, vector, found = retrieve(loaded, by_value=by_value)
    score = loaded.item_vectors @ vector
    if by_value:
        assert loaded.bids is not None
        score = score + loaded.settings.train.temperature * np.log(loaded.bids)
    order = [row for row in np.argsort(-score).tolist() if row not in requester.recent]
    assert rows_of(found, "two_tower") == order[: loaded.settings.retrieve.two_tower]


def test_item_to_item_brings_neighbours_of_recent_items(loaded: LoadedBundle) -> None:
    bundle = with_quotas(loaded, two_tower=0)
    requester, _, found = retrieve(bundle, recent_items=("i10", "i33"))
    first = [int(bundle.neighbours[row][0]) for row in requester.recent]
    similar = rows_of(found, "item_to_item")
    assert similar
    assert len(similar) <= bundle.settings.retrieve.item_to_item
    assert set(similar) <= set(bundle.neighbours[requester.recent].ravel().tolist())
    assert similar[0] == next(row for row in first if row not in requester.recent)


def test_popularity_fills_what_is_left(loaded: LoadedBundle) -> None:
    requester, _, found = retrieve(loaded)
    others = set(rows_of(found, "two_tower")) | set(rows_of(found, "item_to_item")) | set(requester.recent.tolist())
    expected = [row for row in loaded.popularity.tolist() if row not in others]
    popular = rows_of(found, "popularity")
    assert popular == expected[: len(popular)]
    assert len(found.candidates) == loaded.settings.retrieve.candidates


def test_no_duplicates_and_nothing_seen(loaded: LoadedBundle) -> None:
    for number in range(60):
        requester, _, found = retrieve(loaded, f"u{number:02d}")
        rows = found.candidates.rows
        assert len(np.unique(rows)) == len(rows)
        assert not np.isin(rows, requester.recent).any()


def test_nobody_known_gets_the_popular_items(loaded: LoadedBundle) -> None:
    _, _, found = retrieve(loaded, "nobody")
    assert found.candidates.rows.tolist() == loaded.popularity[: loaded.settings.retrieve.candidates].tolist()
    assert set(found.candidates.channels.tolist()) == {CHANNELS.index("popularity")}


def test_nobody_known_gets_what_the_tower_makes_of_the_context_where_that_is_better(loaded: LoadedBundle) -> None:
    bundle = with_quotas(loaded, cold="two_tower")
    slates = {device: retrieve(bundle, "nobody", False, context={"device": device}) for device in ("phone", "desk")}
    for _, vector, found in slates.values():
        near = np.argsort(-(loaded.item_vectors @ vector), kind="stable")[: loaded.settings.retrieve.two_tower]
        assert rows_of(found, "two_tower") == near.tolist()
        rest = [row for row in loaded.popularity.tolist() if row not in near]
        popular = rows_of(found, "popularity")
        assert popular == rest[: len(popular)]
        assert len(found.candidates) == loaded.settings.retrieve.candidates
    first, second = (rows_of(found, "two_tower") for _, _, found in slates.values())
    assert first != second
    _, _, plain = retrieve(with_quotas(loaded, cold="popularity"), "nobody", context={"device": "phone"})
    assert not rows_of(plain, "two_tower")


def test_an_unknown_user_with_recent_items_uses_every_channel(loaded: LoadedBundle) -> None:
    _, _, found = retrieve(loaded, "nobody", recent_items=("i01", "i02"))
    assert rows_of(found, "two_tower")
    assert rows_of(found, "item_to_item")


@pytest.mark.parametrize("user", ["u04", "nobody"])
def test_filters_hold_in_every_channel(loaded: LoadedBundle, user: str) -> None:
    wanted = {"category": ("books", "music"), "brand": ("1000000000000", "2000000000000")}
    _, _, found = retrieve(loaded, user, filters=wanted)
    allowed = loaded.filters["category"].passing(wanted["category"]) & loaded.filters["brand"].passing(wanted["brand"])
    requester = RequestFeatures(loaded).requester(RankQuery(user, 5))
    allowed[requester.recent] = False
    assert sorted(found.candidates.rows.tolist()) == np.flatnonzero(allowed).tolist()[: len(found.candidates)]
    assert len(found.candidates) == min(allowed.sum(), loaded.settings.retrieve.candidates)


def test_a_filter_that_nothing_passes(loaded: LoadedBundle) -> None:
    assert len(retrieve(loaded, filters={"category": ("gardening",)})[2].candidates) == 0


def test_explicit_candidates_replace_retrieval(loaded: LoadedBundle) -> None:
    _, _, found = retrieve(loaded, candidates=("i05", "nothing", "i02", "i05"))
    assert found.candidates.rows.tolist() == loaded.items.rows(["i05", "i02"]).tolist()
    assert found.unknown == ["nothing"]
    assert found.offered == 4


def test_what_is_excluded_does_not_come_and_what_has_no_value_does(loaded: LoadedBundle) -> None:
    _, _, found = retrieve(loaded, excluded={"category": ("books", "games")})
    books = loaded.filters["category"].items(("books", "games"))
    assert len(found.candidates)
    assert not books.contains(found.candidates.rows).any()
    _, _, listed = retrieve(loaded, candidates=("i00", "i02", "i07"), excluded={"category": ("books",)})
    assert loaded.items.keys_of(listed.candidates.rows) == ["i02", "i07"]  # i07 has none


def test_a_range_keeps_its_bounds(loaded: LoadedBundle) -> None:
    bids = loaded.bids
    assert bids is not None
    least, most = np.sort(bids)[[10, 14]].tolist()
    _, _, found = retrieve(loaded, "nobody", ranges={"bid": (least, most)})
    assert sorted(bids[found.candidates.rows].tolist()) == np.sort(bids)[10:15].tolist()
    _, _, both = retrieve(loaded, ranges={"bid": (least, float("inf"))}, filters={"category": ("books",)})
    assert (bids[both.candidates.rows] >= least).all()


@pytest.mark.parametrize("user", ["u04", "nobody"])
def test_few_allowed_items_come_in_the_order_of_their_popularity(loaded: LoadedBundle, user: str) -> None:
    few = {"brand": ("1000000000000",)}
    count = loaded.filters["brand"].items(few["brand"]).count
    requester, _, found = retrieve(loaded, user, filters=few)
    assert count**2 < loaded.settings.retrieve.popularity * len(loaded.popularity)
    others = {*rows_of(found, "two_tower"), *rows_of(found, "item_to_item"), *requester.recent.tolist()}
    brand = set(loaded.filters["brand"].items(few["brand"]).rows().tolist())
    expected = [row for row in loaded.popularity.tolist() if row in brand - others]
    assert rows_of(found, "popularity") == expected


def test_filters_hold_for_explicit_candidates(loaded: LoadedBundle) -> None:
    _, _, found = retrieve(loaded, candidates=("i00", "i01", "i04"), filters={"category": ("books",)})
    assert found.candidates.rows.tolist() == loaded.items.rows(["i00", "i04"]).tolist()


def test_a_quota_of_zero_switches_a_channel_off(loaded: LoadedBundle) -> None:
    _, _, found = retrieve(with_quotas(loaded, item_to_item=0, popularity=0))
    assert set(found.candidates.channels.tolist()) == {CHANNELS.index("two_tower")}


def test_every_candidate_has_its_tower_score(loaded: LoadedBundle) -> None:
    _, vector, found = retrieve(loaded)
    expected = [float(loaded.item_vectors[row] @ vector) for row in found.candidates.rows]
    assert found.candidates.scores["retrieve"] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("again", [False, True])
def test_recent_items_come_again_where_users_take_items_again(loaded: LoadedBundle, again: bool) -> None:
    count = len(loaded.item_vectors)
    bundle = with_quotas(loaded, two_tower=count, candidates=count, repeat=again)
    requester, _, found = retrieve(bundle, recent_items=("i10", "i33"))
    assert len(requester.recent) == 2
    assert np.isin(requester.recent, found.candidates.rows).all() == again


def test_a_further_channel_brings_its_quota_once(with_channel: LoadedBundle) -> None:
    requester, _, found = retrieve(with_channel, recent_items=("i12", "i11", "i10"))
    brought = rows_of(found, "sasrec")
    assert 0 < len(brought) <= 10
    assert len(set(found.candidates.rows.tolist())) == len(found.candidates)
    assert not np.isin(requester.recent, found.candidates.rows).any()
    assert found.dropped == ""


def test_a_further_channel_keeps_the_filters(with_channel: LoadedBundle) -> None:
    alone = with_quotas(with_channel, two_tower=0, item_to_item=0, popularity=0)
    _, _, found = retrieve(alone, recent_items=("i12",), filters={"category": ("games",)})
    games = with_channel.filters["category"].items(("games",))
    assert len(rows_of(found, "sasrec")) == 10
    assert games.contains(found.candidates.rows).all()


def test_without_recent_items_a_further_channel_has_nothing_to_say(with_channel: LoadedBundle) -> None:
    _, _, found = retrieve(with_channel, recent_items=())
    assert rows_of(found, "sasrec") == []


def test_a_channel_without_time_is_left_out_and_said(
    with_channel: LoadedBundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage, query = RetrievalStage(with_channel), RankQuery("u01", 5, recent_items=("i12",))
    requester = RequestFeatures(with_channel).requester(query)
    vector = np.ones(with_channel.item_vectors.shape[1], dtype=np.float32)
    work = VectorChannel.best

    def slow(*arguments: object) -> np.ndarray:
        time.sleep(0.1)
        return work(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(VectorChannel, "best", slow)
    assert [stage.run(query, requester, vector, False).dropped for _ in range(2)] == ["", ""]
    found = stage.run(query, requester, vector, False, Deadline(0.09))
    assert found.dropped == "no time for channel sasrec"
    assert rows_of(found, "sasrec") == []
    assert len(found.candidates) == with_channel.settings.retrieve.candidates  # popularity fills its quota


def test_a_channel_that_fails_is_left_out_and_said(with_channel: LoadedBundle, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> np.ndarray:
        raise ValueError("broken")

    monkeypatch.setattr(VectorChannel, "best", broken)
    _, _, found = retrieve(with_channel, recent_items=("i12",))
    assert found.dropped == "channel sasrec failed: ValueError"
    assert len(found.candidates) == with_channel.settings.retrieve.candidates


def test_who_took_nothing_yet_gets_what_is_popular_of_late(with_channel: LoadedBundle) -> None:
    counts = np.zeros(len(with_channel.items), np.float32)
    counts[[40, 7]] = 1, 2
    late = CountChannel(name="recent_popularity", counts=counts)
    bundle = replace(with_quotas(with_channel, channels={"recent_popularity": {"quota": 2}}), channels=(late,))
    requester, _, found = retrieve(bundle, user="a stranger")
    assert requester.cold
    assert rows_of(found, "recent_popularity") == [7, 40]
