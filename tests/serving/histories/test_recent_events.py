"""What a bundle's encoder is told of events: the same by the stored history, by the request, and in training."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest

from contracts.artifacts import Artifacts
from contracts.errors import BundleError, SchemaError
from contracts.features import vocabulary
from contracts.features.event_features import EVENT, ToldEvents
from contracts.features.vocabulary import Vocabulary
from models.interactions.told_events import SECOND
from serving.assembly.online_stores import write_users
from serving.histories.recent_events import RecentEvents
from serving.request.query import FreshUser, RankQuery, StageReport, StoredUser
from serving.request.request_features import RequestFeatures
from tests.serving.conftest import EVENTS_FROM, told_users, train_channels, write_table

USER = "u04"  # of four recent items
REPORT = StageReport("user", 0, 0, 0)


@pytest.fixture(scope="module")
def features(told_bundle):
    return RequestFeatures(told_bundle)


def history(market):
    return tuple(market.users["_recent_items"][int(USER[1:])])


def told(count):
    return ToldEvents([EVENTS_FROM - 3600 * SECOND * n for n in range(count)],
                      {"kind": ["click", "order", None, "odd", "click"][:count]})


def same(one, other):
    assert one.recent.tolist() == other.recent.tolist()
    for part in ("times", "values"):
        assert getattr(one.events, part).tolist() == getattr(other.events, part).tolist()


def test_training_and_server_agree_of_every_history_told_or_not(told_bundle):
    assert [(channel.name, channel.parity.rows, channel.parity.mismatches) for channel in told_bundle.channels] == [
        ("sasrec", 64, 0), ("ease", 64, 0)]
    assert told_bundle.channels[0].parity.max_logit_difference < 1e-4


def test_a_stored_history_is_told_as_a_request_and_as_a_row_of_a_shared_store_would_tell_it(
    told_bundle, features, market
):
    items = history(market)
    stored = features.requester(RankQuery(USER, 5))
    assert stored.events.values[:3].tolist() == [[2], [3], [1]]
    assert stored.events.times[:2].tolist() == [EVENTS_FROM, EVENTS_FROM - 3600 * SECOND]
    assert abs(stored.events.now - time.time() * SECOND) < 600 * SECOND
    same(features.requester(RankQuery(USER, 5, recent_items=items, told=told(len(items)))), stored)
    row = StoredUser(features.requester(RankQuery(USER, 5)).inputs, items, told(len(items)))
    width, numbers = told_bundle.spec.id_width("user"), len(told_bundle.spec.dense_slots("user"))
    kept = replace(row, inputs=type(row.inputs)(row.inputs.ids[:, :width], row.inputs.dense[:, :numbers]))
    same(features.requester(RankQuery("nobody", 5, fresh=FreshUser(REPORT, stored=kept))), stored)


def test_later_events_come_first_with_what_is_told_of_them(features, market):
    fresh = FreshUser(REPORT, ("i40", "gone"), told=ToldEvents([EVENTS_FROM + 5, 7], {"kind": ["order", "click"]}))
    before, found = (features.requester(RankQuery(USER, 5, fresh=one)) for one in (None, fresh))
    assert found.recent.tolist()[1:] == before.recent.tolist()
    assert found.events.times.tolist() == [EVENTS_FROM + 5, *before.events.times.tolist()]
    assert found.events.values.tolist() == [[3], *before.events.values.tolist()]


def test_what_is_told_moves_the_vector_and_what_is_not_told_is_unknown(told_bundle, features):
    channel, keys = told_bundle.channels[0], ("i12", "i11", "i10")
    vectors = {}
    for name, one in (("nothing", ToldEvents()), ("times", ToldEvents(told(3).times)), ("all", told(3)),
                      ("odd", ToldEvents(columns={"kind": ["odd", None, "odd"]}))):
        asked = features.requester(RankQuery("nobody", 5, recent_items=keys, told=one))
        vectors[name] = channel.vector(asked.recent, asked.events)
    np.testing.assert_array_equal(vectors["nothing"], vectors["odd"])
    np.testing.assert_allclose(vectors["nothing"], channel.vector(told_bundle.items.rows(keys)), rtol=1e-6)
    assert np.abs(vectors["times"] - vectors["nothing"]).max() > 1e-3
    assert np.abs(vectors["all"] - vectors["times"]).max() > 1e-3


def test_a_history_without_a_row_or_columns_is_told_of_nothing(told_bundle):
    tables = told_bundle.told
    assert tables.row(-1).times.shape == (0,)
    assert tables.untold(2).values.tolist() == [[1], [1]]
    events = RecentEvents(np.array([9, 5]) * SECOND, np.array([[3], [2]]), 12 * SECOND)
    assert events.inputs(gaps=True)[:, 1].tolist() == [2, 3]  # oldest first
    assert events.inputs(gaps=True)[:, 0].tolist() == [4, 4]  # 4 and 3 seconds
    assert events.inputs(gaps=False).tolist() == [[2], [3]]


def test_events_that_the_run_was_not_made_with_are_refused(told_bundle, market, tmp_path):
    """Neither by `sluice features` nor by `sluice train`."""
    out, retrieve = Artifacts(tmp_path / "out"), told_bundle.settings.retrieve
    write = lambda: write_users(out, tmp_path, told_bundle.encoder, told_bundle.items, retrieve)  # noqa: E731
    write_table(out.online_users, market.users)
    with pytest.raises(SchemaError, match=r"'_recent_times'.*run `sluice features` again"):
        write()
    write_table(out.online_users, told_users(market, retrieve))
    with pytest.raises(BundleError, match="'sasrec' was trained without 'kind'"):
        write()
    train_channels(replace(market, config=market.config.model_copy(update={"retrieve": retrieve})), out)
    assert len(write()) == len(told_bundle.users)


def test_a_columns_name_is_no_pattern(told_bundle, market, tmp_path):
    out, name = Artifacts(tmp_path / "out"), "kind[1]"
    retrieve = told_bundle.settings.retrieve.model_copy(update={"events": (name,)})
    write_table(out.online_users, told_users(market, retrieve))
    vocabulary.write(out.channel("sasrec"), EVENT + name, Vocabulary.of(["click", "order"], "string"))
    write_users(out, tmp_path, told_bundle.encoder, told_bundle.items, retrieve)
    assert EVENT + name in vocabulary.read_all(tmp_path)
