from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from contracts.features.encoding import Encoder
from contracts.features.feature_spec import PADDING, UNKNOWN, FeatureField
from serving.bundle.loaded_bundle import LoadedBundle
from serving.events.event_users import EventUsers
from serving.request.query import FreshUser, RankQuery, StageReport, as_column
from serving.request.request_features import Requester, RequestFeatures
from tests.serving.recorded_events import SECOND, START, SetClock, click_event, recorded_features, shown_event, store_at


@pytest.fixture(scope="module")
def features(loaded: LoadedBundle) -> RequestFeatures:
    return RequestFeatures(loaded)


def requester(features: RequestFeatures, user: str = "u05", **query: object) -> Requester:
    return features.requester(RankQuery(user, 5, **query))  # type: ignore[arg-type]


def test_the_request_block_is_what_the_encoder_writes(features: RequestFeatures, loaded: LoadedBundle, market) -> None:
    """User from the stored table, context from the request, against encoding everything at once."""
    for number, user in enumerate(market.users["_user"]):
        columns = {name: [market.users[name][number]] for name in ("taste", "visits", "history")}
        expected = loaded.encoder.encode({**columns, "device": ["phone"], "hour": [7.5]}, "user", "context")
        found = requester(features, user, context={"device": "phone", "hour": 7.5})
        assert found.known
        assert found.inputs.ids.tolist() == expected.ids.tolist()
        assert found.inputs.dense.tolist() == expected.dense.tolist()


def test_an_unknown_user_without_context_is_all_missing(features: RequestFeatures) -> None:
    found = requester(features, "nobody")
    assert not found.known
    assert not len(found.recent)
    assert found.inputs.ids.tolist() == features.missing_request.ids.tolist()
    assert found.inputs.dense.tolist() == features.missing_request.dense.tolist()


def test_what_an_online_store_knows_and_the_bundle_does_not_read_changes_nothing(features: RequestFeatures) -> None:
    fresh = FreshUser(StageReport("user", 0, 0, 0), (), {"visits": 3.0, "another_count_1m": 9.0})
    found, expected = (requester(features, fresh=replace(fresh, values=values)).inputs
                       for values in (fresh.values, {"visits": 3.0}))
    assert found.ids.tolist() == expected.ids.tolist()
    assert found.dense.tolist() == expected.dense.tolist()


def test_a_click_that_another_host_has_landed_is_in_the_history_once(
    tmp_path: Path, features: RequestFeatures, loaded: LoadedBundle
) -> None:
    """Though this one learns it after the tables were published; what nobody has landed is added."""
    clock, published = SetClock(), datetime.fromtimestamp(START / SECOND + 50, UTC)
    user = next(name for name in map("u{:02d}".format, range(60)) if len(requester(features, name).recent) > 1)
    stored = [loaded.items.key(row) for row in requester(features, user).recent.tolist()]
    other = next(key for key in map(loaded.items.key, range(len(stored) + 1)) if key not in stored)
    knows = recorded_features(86_400).model_copy(update={"published": published})
    store = store_at(tmp_path, clock)
    clock.now += 60 * SECOND
    for seconds, item in ((40, stored[0]), (45, other)):
        at = START + seconds * SECOND
        store.record([[shown_event(item, at, user, item), click_event(item, at + SECOND, user, item)]])
    clock.now += SECOND
    users = EventUsers(lambda: store_at(tmp_path, clock), knows, clock)
    found = requester(features, user, fresh=asyncio.run(users.read(user)))
    assert [loaded.items.key(row) for row in found.recent.tolist()] == [other, *stored]
    expected = loaded.encoder.encode({"history": [[other, *stored]]}, "user").ids
    slot = features.request_ids["history"]
    span = slice(slot.start, slot.start + slot.width)
    assert found.inputs.ids[:, span].tolist() == expected[:, span].tolist()


def test_a_fresh_click_comes_before_the_whole_history_that_was_published(loaded: LoadedBundle) -> None:
    """Which may be longer than the recent items that are kept beside it, and leaves out clicks without a value."""
    features = RequestFeatures(replace(loaded, recent=np.full_like(loaded.recent, -1)))
    slot = features.request_ids["history"]
    before = requester(features, "u06").inputs.ids[0, slot.start : slot.start + slot.width].tolist()
    assert before[0] != PADDING
    found = requester(features, "u06", fresh=FreshUser(StageReport("user", 0, 0, 0), ("i04",)))
    clicked = loaded.encoder.encode({"history": [["i04"]]}, "user").ids[0, slot.start]
    assert found.inputs.ids[0, slot.start : slot.start + slot.width].tolist() == [clicked, *before][: slot.width]
    assert [loaded.items.key(row) for row in found.recent.tolist()] == ["i04"]


def test_what_is_said_of_the_context_often_is_encoded_once(
    loaded: LoadedBundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And not mistaken for another of the same value; long texts are read every time, and not kept."""
    features, encode, asked = RequestFeatures(loaded), Encoder.field_ids, list[object]()

    def noted(encoder: Encoder, field: FeatureField, values: Sequence[object]) -> list[np.ndarray]:
        asked.extend(values)
        return encode(encoder, field, values)

    monkeypatch.setattr(Encoder, "field_ids", noted)
    long = "x" * 65
    for device, hour in (("phone", 7.5), ("phone", 7.5), (long, 1), (long, 1.0)):
        given = {"device": device, "hour": hour}
        found, told = requester(features, "nobody", context=given).inputs, loaded.encoder.encode(
            {name: [value] for name, value in given.items()}, "user", "context")
        assert found.ids.tolist() == told.ids.tolist()
        assert found.dense.tolist() == told.dense.tolist()
    read = [value for value in asked if value is not None]
    assert [read.count(value) for value in ("phone", 7.5, long)] == [1 + 2, 1 + 2, 2 + 2]  # and by `encode` itself


def test_recent_items_replace_the_history(features: RequestFeatures, loaded: LoadedBundle) -> None:
    keys = ("i04", "never-seen", "i03", "i02")
    found = requester(features, recent_items=keys)
    expected = loaded.encoder.encode({"history": [list(keys)]}, "user").ids
    slot = features.request_ids["history"]
    span = slice(slot.start, slot.start + slot.width)
    assert found.inputs.ids[:, span].tolist() == expected[:, span].tolist()
    assert found.inputs.ids[0, slot.start + 1] == UNKNOWN
    assert found.recent.tolist() == loaded.items.rows(["i04", "i03", "i02"]).tolist()


def test_a_click_without_a_value_takes_no_place_in_the_history(loaded: LoadedBundle) -> None:
    """As offline; where it is told by the request as where the host learned of it."""
    has = np.ones(len(loaded.items) + 1, dtype=bool)
    has[loaded.items.rows(["i03", "i05"])] = has[-1] = False
    features = RequestFeatures(replace(loaded, listed={"item_id": has}))
    slot = features.request_ids["history"]
    span = slice(slot.start, slot.start + slot.width)
    told = requester(features, recent_items=("i04", "never-seen", "i03", "i02"))
    expected = loaded.encoder.encode({"history": [["i04", "i02"]]}, "user").ids
    assert told.inputs.ids[:, span].tolist() == expected[:, span].tolist()
    before = requester(features, "u06").inputs.ids[0, span].tolist()
    learned = requester(features, "u06", fresh=FreshUser(StageReport("user", 0, 0, 0), ("i05", "i04", "i03")))
    assert learned.inputs.ids[0, span].tolist() == [expected[0, slot.start], *before][: slot.width]
    assert [loaded.items.key(row) for row in learned.recent.tolist()][:3] == ["i05", "i04", "i03"]


def test_no_recent_items_is_an_empty_history(features: RequestFeatures) -> None:
    found = requester(features, recent_items=())
    slot = features.request_ids["history"]
    assert (found.inputs.ids[0, slot.start : slot.start + slot.width] == PADDING).all()
    assert not len(found.recent)


def test_the_stored_row_is_not_written_to(features: RequestFeatures) -> None:
    before = requester(features).inputs.ids.tolist()
    requester(features, recent_items=("i01",), context={"device": "desk"})
    assert requester(features).inputs.ids.tolist() == before


def test_the_candidate_block_is_what_the_encoder_writes(
    features: RequestFeatures, loaded: LoadedBundle, market
) -> None:
    user = requester(features, context={"hour": 13.0})
    names = [slot.field for slot in loaded.spec.id_slots("item")]
    columns = {name: market.items[name] for name in names}
    items = loaded.encoder.encode(columns, "item")
    candidate = features.candidate_inputs(loaded.items.rows(market.items["_item"]), user.inputs.ids)
    assert candidate.ids[:, : items.ids.shape[1]].tolist() == items.ids.tolist()
    assert candidate.dense.tolist() == items.dense.tolist()
    request = {slot.name: user.inputs.ids[:, slot.start] for slot in loaded.spec.block_ids("request")}
    item = {slot.name: items.ids[:, slot.start] for slot in loaded.spec.id_slots("item")}
    crosses = loaded.encoder.cross_ids({part: {**request, **item}[part] for part in loaded.encoder.part_slots})
    assert candidate.ids[:, items.ids.shape[1] :].tolist() == crosses.tolist()


def test_no_candidates_give_an_empty_block(features: RequestFeatures, loaded: LoadedBundle) -> None:
    candidate = features.candidate_inputs(np.empty(0, dtype=np.int64), requester(features).inputs.ids)
    assert candidate.ids.shape == (0, loaded.spec.id_width("item", "cross"))


@pytest.mark.parametrize("given", [(), ("t1",), ("t1", "t2"), ("t2", "never-seen", "t1"), "t1"])
def test_several_values_of_a_context_field_are_what_the_encoder_writes(loaded: LoadedBundle, given) -> None:
    tags = loaded.spec.by_name["tags"]
    moods = FeatureField(name="moods", kind="multi_valued", side="context", length=2, vocabulary=tags.vocabulary,
                         size=tags.size)
    spec = loaded.spec.model_copy(update={"fields": (*loaded.spec.fields, moods)})
    bundle = replace(loaded, spec=spec, encoder=Encoder(spec, loaded.encoder.vocabularies))
    features = RequestFeatures(bundle)
    found = requester(features, context={"moods": given}).inputs.ids
    slot = features.request_ids["moods"]
    expected = bundle.encoder.encode({"moods": [as_column(moods, given)]}, "context").ids
    assert found[0, slot.start : slot.start + 2].tolist() == expected[0, -2:].tolist()
    assert (found[0, slot.start] == PADDING) == (given == ())
