"""Given items are scored as the ranker of a whole request scores them, and unknown ones by what the request says."""

from __future__ import annotations

import math
from typing import Any

import pytest

from contracts.errors import RequestError
from serving.bundle.loaded_bundle import LoadedBundle
from serving.request.deadline import Cancelled, Deadline, DeadlineExpired
from serving.request.query import RankQuery, ScoreAnswer, ScoreQuery
from serving.stages import score_run
from serving.stages.funnel import Funnel

CONTEXT: dict[str, str | int | float | bool] = {"device": "phone", "hour": 9.0}
FOREVER = Deadline(None)


@pytest.fixture(scope="module")
def funnel(loaded: LoadedBundle) -> Funnel:
    return Funnel(loaded)


def score(funnel: Funnel, items: tuple[str, ...], deadline: Deadline = FOREVER, **asked: Any) -> ScoreAnswer:
    return funnel.begin_score(ScoreQuery("u06", items, CONTEXT, **asked), deadline).complete()


def test_probabilities_are_those_of_a_whole_request(funnel: Funnel, loaded: LoadedBundle) -> None:
    ranked = funnel.rank(RankQuery("u06", 10, CONTEXT), FOREVER)
    found = score(funnel, tuple(item.item for item in ranked.items))
    assert found.probabilities == pytest.approx([item.probability for item in ranked.items], abs=1e-5)
    assert (found.unknown, found.known_user, found.bundle_version) == ([], True, loaded.version)


def test_every_item_is_scored_alone_and_in_its_order(
    funnel: Funnel, loaded: LoadedBundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the chunks; a repeated item is scored twice."""
    items = tuple(loaded.items.key(row) for row in (5, 3, 9, 3))
    whole = score(funnel, items).probabilities
    monkeypatch.setattr(score_run, "CHUNK", 3)
    assert score(funnel, items).probabilities == pytest.approx(whole, abs=1e-6)
    assert [score(funnel, (item,)).probabilities[0] for item in items] == pytest.approx(whole, abs=1e-6)
    assert whole[1] == whole[3]


def test_an_unknown_item_is_nan_unless_the_request_describes_it(
    funnel: Funnel, market: Any, loaded: LoadedBundle
) -> None:
    """Described as a known one, it gets the known one's probability; its id alone stays unknown."""
    row = market.items["item_id"].index("i78")  # too new for the vocabulary of ids
    described = {name: market.items[name][row] for name in ("category", "brand", "price", "item_id")}
    described["tags"] = tuple(market.items["tags"][row] or ())
    plain = score(funnel, ("i78", "new", "other"), features={"new": described})
    assert plain.unknown == ["other"]
    assert math.isnan(plain.probabilities[2])
    assert plain.probabilities[1] == pytest.approx(plain.probabilities[0], abs=1e-5)


@pytest.mark.parametrize(("items", "asked", "field"), [
    ((), {}, "item_ids"),
    (("x",), {"features": {"x": {"no_such": 1}}}, r"features\[x\]\[no_such\]"),
    (("x",), {"features": {"x": {"category": 3}}}, r"features\[x\]\[category\]")])
def test_what_cannot_be_scored_is_refused(
    funnel: Funnel, items: tuple[str, ...], asked: dict[str, Any], field: str
) -> None:
    with pytest.raises(RequestError, match=field):
        score(funnel, items, **asked)


def test_few_items_are_brief_unless_the_request_describes_some(funnel: Funnel) -> None:
    """What it describes may be ten thousands of values, to be encoded."""
    def brief(items: int, **asked: Any) -> bool:
        names = tuple(f"i{number}" for number in range(items))
        return funnel.begin_score(ScoreQuery("u06", names, **asked), FOREVER).brief

    assert brief(score_run.CHUNK)
    assert not brief(score_run.CHUNK + 1)
    assert not brief(1, features={"i0": {"category": "books"}})


def test_all_or_nothing_in_time(funnel: Funnel, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DeadlineExpired):
        score(funnel, ("i01",), Deadline(0.0))
    gone = Deadline(None)
    gone.cancel()
    with pytest.raises(Cancelled):
        score(funnel, ("i01",), gone)
    monkeypatch.setattr(score_run, "CHUNK", 1)
    late = funnel.begin_score(ScoreQuery("u06", ("i01", "i02")), Deadline(5.0))
    late.deadline = Deadline(0.0)
    with pytest.raises(DeadlineExpired, match="after 1 of 2 items"):
        late.complete()
