"""What an answer is made of when a stage raises, hangs, or the caller goes; the wire plays no part."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from models.inference.tower_vectors import UserTower
from serving.bundle.channel import VectorChannel
from serving.bundle.loaded_bundle import LoadedBundle
from serving.replay.channel_recall import with_quotas
from serving.request.deadline import Cancelled, Deadline, DeadlineExpired
from serving.request.query import MORE_COMES, Fallback, RankAnswer, RankQuery, StageStatus
from serving.request.request_features import RequestFeatures
from serving.stages import prerank, rank, request_run
from serving.stages.funnel import Funnel
from serving.stages.prerank import PrerankStage
from serving.stages.rank import RankStage
from serving.stages.reasons import Reasons
from serving.stages.rerank import RerankStage
from serving.stages.retrieval import RetrievalStage

STAGES: dict[str, tuple[type, Fallback]] = {
    "retrieve": (RetrievalStage, Fallback.POPULAR), "prerank": (PrerankStage, Fallback.TWO_TOWER_SCORE),
    "rank": (RankStage, Fallback.PREVIOUS_ORDER), "rerank": (RerankStage, Fallback.ORGANIC_ORDER)}
ASKED = RankQuery("u11", 5)


def instead(monkeypatch: pytest.MonkeyPatch, stage: str, act: Callable[[], None]) -> None:
    """`act` comes before the stage's work."""
    owner = STAGES[stage][0]
    work = owner.run  # type: ignore[attr-defined]

    def run(self: Any, *arguments: Any, **named: Any) -> Any:
        act()
        return work(self, *arguments, **named)

    monkeypatch.setattr(owner, "run", run)


def broken() -> None:
    raise ZeroDivisionError


def fallbacks(answer: RankAnswer) -> dict[str, Fallback]:
    return {stage.name: stage.fallback for stage in answer.stages if stage.fallback is not Fallback.NONE}


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "computed"), [("fscd", 0), ("towers", 1)])
def test_the_tower_of_a_cold_user_is_computed_only_where_a_stage_reads_it(
    publish_bundle: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, kind: str, computed: int
) -> None:
    asked: list[object] = []
    tower = UserTower.__call__

    def counted(self: UserTower, request: Any) -> Any:
        asked.append(request)
        return tower(self, request)

    monkeypatch.setattr(UserTower, "__call__", counted)
    funnel = Funnel(LoadedBundle.load(publish_bundle(prerank={"kind": kind})))
    asked.clear()
    assert len(funnel.rank(RankQuery("a stranger", 5), Deadline(None)).items) == 5
    assert len(asked) == computed
    funnel.rank(ASKED, Deadline(None))
    assert len(asked) == computed + 1


@pytest.mark.slow
def test_the_tower_of_a_cold_user_is_computed_where_it_retrieves_for_them(publish_bundle: Callable[..., Path]) -> None:
    bundle = LoadedBundle.load(publish_bundle(prerank={"kind": "fscd"}, retrieve={"cold": "two_tower"}))
    answer = Funnel(bundle).rank(RankQuery("a stranger", 5, {"device": "phone"}), Deadline(None))
    assert not answer.degraded
    assert "two_tower" in {item.channel for item in answer.items}


@pytest.mark.parametrize("stage", list(STAGES))
def test_a_stage_that_raises_is_replaced_and_says_so(
    loaded: LoadedBundle, monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    funnel = Funnel(loaded)
    instead(monkeypatch, stage, broken)
    answer = funnel.rank(ASKED, Deadline(None))
    assert fallbacks(answer) == {stage: STAGES[stage][1]}
    report = next(one for one in answer.stages if one.name == stage)
    assert (report.status, report.cause) == (StageStatus.DEGRADED, "it failed: ZeroDivisionError")
    assert len(answer.items) == 5


@pytest.mark.parametrize("stage", list(STAGES))
def test_who_wants_all_or_nothing_gets_the_error(
    loaded: LoadedBundle, monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    funnel = Funnel(loaded)
    instead(monkeypatch, stage, broken)
    with pytest.raises(ZeroDivisionError):
        funnel.rank(RankQuery("u11", 5, partial_ok=False), Deadline(None))


@pytest.mark.parametrize("stage", list(STAGES))
def test_while_a_stage_hangs_the_run_answers_with_what_it_holds(
    loaded: LoadedBundle, monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    """Everything from the hanging stage on is replaced; what was done before stays."""
    funnel = Funnel(loaded)
    salvaged: list[RankAnswer] = []
    run = funnel.begin(ASKED, Deadline(None))
    instead(monkeypatch, stage, lambda: salvaged.append(run.salvage()) if not salvaged else None)
    whole = run.complete()
    names = list(STAGES)
    late = names[names.index(stage) :]
    wanted = {name: STAGES[name][1] for name in late if name != "rerank" or stage == "rerank"}
    assert fallbacks(salvaged[0]) == wanted
    assert not whole.degraded
    assert len(salvaged[0].items) == 5
    assert all(0 < item.probability < 1 for item in salvaged[0].items)


def test_while_reasons_hang_the_slate_keeps_its_order_and_prices(
    loaded: LoadedBundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    salvaged: list[RankAnswer] = []
    run = Funnel(loaded).begin(replace(ASKED, explain=True), Deadline(None))
    explain = Reasons.top

    def overrun(self: Reasons, *arguments: Any) -> Any:
        salvaged.append(run.salvage())
        return explain(self, *arguments)

    monkeypatch.setattr(Reasons, "top", overrun)
    whole = run.complete()
    assert any(item.reasons for item in whole.items)
    assert any(item.price for item in whole.items)
    assert salvaged[0].items == [replace(item, reasons=[]) for item in whole.items]
    assert fallbacks(salvaged[0]) == {"explain": Fallback.WITHOUT_REASONS}
    assert salvaged[0].stages[:-1] == whole.stages[:-1]


def test_described_items_that_are_not_read_in_time_are_not_read_for_an_answer_either(
    loaded: LoadedBundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who answers in a run's place is the event loop, which would stand still meanwhile."""
    asked = replace(ASKED, candidates=("i01", "new"), features={"new": {"category": "music"}}, bids={"new": 1.0})
    run = Funnel(loaded).begin(asked, Deadline(None))
    known = replace(asked, candidates=("i01",), features={"i01": {"category": "music"}}, bids={"i01": 1.0})
    assert [item.item for item in Funnel(loaded).begin(known, Deadline(None)).salvage().items] == ["i01"]
    late: list[RankAnswer] = []

    def salvage() -> None:
        with pytest.raises(DeadlineExpired, match="described items"):
            run.salvage()

    instead(monkeypatch, "retrieve", salvage)
    instead(monkeypatch, "prerank", lambda: late.append(run.salvage()))
    assert not run.complete().degraded
    assert {item.item for item in late[0].items} == {"i01", "new"}


def test_an_answer_in_a_runs_place_takes_over_what_is_known_of_the_user(
    loaded: LoadedBundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, encoded, whole = Funnel(loaded).begin(ASKED, Deadline(None)), list[object](), RequestFeatures.requester

    def counted(self: RequestFeatures, query: Any) -> Any:
        encoded.append(query)
        return whole(self, query)

    monkeypatch.setattr(RequestFeatures, "requester", counted)
    salvaged: list[RankAnswer] = []
    instead(monkeypatch, "retrieve", lambda: salvaged.append(run.salvage()))
    run.complete()
    assert len(salvaged[0].items) == 5
    assert len(encoded) == 1


@pytest.mark.parametrize(("level", "without"), [(0, []), (1, ["rank"]), (2, ["prerank", "rank"]),
                                                  (3, ["retrieve", "prerank", "rank"])])
def test_where_more_comes_than_can_be_answered_stages_are_left_out_and_say_so(
    loaded: LoadedBundle, monkeypatch: pytest.MonkeyPatch, level: int, without: list[str]
) -> None:
    done: list[str] = []
    for name in ("retrieve", "prerank", "rank"):
        instead(monkeypatch, name, partial(done.append, name))
    run = Funnel(loaded).begin(replace(ASKED, explain=True), Deadline(None))
    done.clear()
    run.simplify(level)
    answer = run.complete()
    assert done == [name for name in ("retrieve", "prerank", "rank") if name not in without]
    assert {name: fallback for name, fallback in fallbacks(answer).items() if name != "explain"} == {
        name: STAGES[name][1] for name in without}
    assert {stage.cause for stage in answer.stages if stage.name in without} == ({MORE_COMES} if without else set())
    assert len(answer.items) == 5
    assert all(0 < item.probability < 1 for item in answer.items)


def test_of_given_candidates_the_towers_order_is_the_simplest_answer(loaded: LoadedBundle) -> None:
    run = Funnel(loaded).begin(replace(ASKED, candidates=("i01", "i02", "i03"), limit=3), Deadline(None))
    run.simplify(3)
    answer = run.complete()
    assert fallbacks(answer) == {name: STAGES[name][1] for name in ("prerank", "rank")}
    assert {item.item for item in answer.items} == {"i01", "i02", "i03"}
    assert all("retrieve" in item.stage_scores for item in answer.items)


def test_a_caller_who_has_gone_ends_the_run(loaded: LoadedBundle, monkeypatch: pytest.MonkeyPatch) -> None:
    funnel, deadline, ranked = Funnel(loaded), Deadline(None), []
    instead(monkeypatch, "prerank", deadline.cancel)
    instead(monkeypatch, "rank", lambda: ranked.append(True))
    with pytest.raises(Cancelled):
        funnel.begin(ASKED, deadline).complete()
    assert not ranked


def test_the_clock_knows_every_stage_after_one_request(loaded: LoadedBundle) -> None:
    funnel = Funnel(loaded)
    assert funnel.whole == 0.0
    for _ in range(2):
        funnel.rank(ASKED, Deadline(None))
    assert 0.0 < funnel.floor < funnel.whole < 5.0


@pytest.mark.parametrize("stage", ["prerank", "rank"])
def test_a_chunk_takes_its_share_of_what_was_scored_and_not_of_what_was_kept(
    loaded: LoadedBundle, monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    """The time is over once the first chunk of eight is scored, of which pre-ranking keeps five."""
    keeps = loaded.settings.prerank.model_copy(update={"keep": 5 if stage == "prerank" else 20})
    funnel = Funnel(replace(loaded, settings=loaded.settings.model_copy(update={"prerank": keeps})))
    for module in (prerank, rank):
        monkeypatch.setattr(module, "CHUNK", 8)
    monkeypatch.setattr(request_run, "CHUNKS", {"prerank": 8, "rank": 8})
    funnel.rank(ASKED, Deadline(None))
    funnel.forget_times()
    for _ in range(2):
        funnel.clock.tell(stage, 10.0)
    deadline = Deadline(2.0)
    instead(monkeypatch, stage, lambda: time.sleep(max(deadline.remaining(), 0.0)))
    report = next(one for one in funnel.rank(ASKED, deadline).stages if one.name == stage)
    assert report.cause.startswith("the deadline passed after 8 of ")
    assert funnel.clock.estimate(f"{stage}/chunk") == pytest.approx(report.microseconds / 1e6, abs=1e-5)


def test_given_candidates_and_searches_have_times_of_their_own(loaded: LoadedBundle) -> None:
    """Of a funnel in which the one is known to take a thousand seconds, asked for both with a minute."""
    listed = replace(ASKED, candidates=("i01", "i02", "i03"), limit=3)
    for slow, name, other in ((listed, "list", ASKED), (ASKED, "retrieve", listed)):
        funnel = Funnel(loaded)
        funnel.rank(other, Deadline(None))
        assert funnel.clock.estimate(name) == 0.0
        for _ in range(2):
            funnel.clock.tell(name, 1000.0)
        assert fallbacks(funnel.rank(slow, Deadline(60.0))) == {"retrieve": Fallback.POPULAR}
        assert not funnel.rank(other, Deadline(60.0)).degraded
        for partial_ok in (True, False):
            slower, faster = (funnel.begin(replace(asked, partial_ok=partial_ok), Deadline(None)).least
                              for asked in (slow, other))
            assert 0.0 < faster < 60.0 < 1000.0 < slower


def test_popular_items_keep_the_filters_and_leave_out_what_was_seen(
    loaded: LoadedBundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    funnel = Funnel(loaded)
    instead(monkeypatch, "retrieve", broken)
    answer = funnel.rank(RankQuery("u11", 5, filters={"category": ("music",)}, recent_items=("i02",)), Deadline(None))
    allowed = loaded.filters["category"].passing(("music",))
    rows = loaded.items.rows([item.item for item in answer.items])
    assert len(rows)
    assert allowed[rows].all()
    assert "i02" not in {item.item for item in answer.items}
    assert {item.channel for item in answer.items} == {"popularity"}


def test_a_channel_that_fails_is_told_and_the_rest_answers(
    with_channel: LoadedBundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of ten candidates, all of which are shown."""
    alone = with_quotas(with_channel.settings.retrieve, {
        "two_tower": 0, "item_to_item": 0, "popularity": 0, "sasrec": 4, "ease": 3, "item_cosine": 3})
    alone = alone.model_copy(update={"candidates": 10})
    settings = with_channel.settings.model_copy(update={"retrieve": alone})
    funnel, asked = Funnel(replace(with_channel, settings=settings)), RankQuery("u11", 10, recent_items=("i12", "i11"))
    whole = funnel.rank(asked, Deadline(None))
    assert whole.stages[0].status is StageStatus.COMPLETE
    assert {item.channel for item in whole.items} == {"sasrec", "ease", "item_cosine"}
    monkeypatch.setattr(VectorChannel, "best", lambda *_: broken())
    answer = funnel.rank(asked, Deadline(None))
    assert (answer.stages[0].status, answer.stages[0].cause) == (
        StageStatus.DEGRADED, "channel sasrec failed: ZeroDivisionError")
    assert answer.degraded
    assert {item.channel for item in answer.items} == {"ease", "item_cosine", "popularity"}
    with pytest.raises(DeadlineExpired):
        funnel.rank(RankQuery("u11", 10, recent_items=("i12",), partial_ok=False), Deadline(None))


@pytest.mark.parametrize(("user", "recent", "read", "computed"), [
    ("nobody", None, False, 0), ("nobody", None, True, 1), ("nobody", ("i02",), False, 1), ("u11", None, False, 1)])
def test_of_whom_nothing_is_known_no_tower_is_computed_that_no_stage_reads(
    loaded: LoadedBundle, monkeypatch: pytest.MonkeyPatch, user: str, recent: tuple[str, ...] | None, read: bool,
    computed: int,
) -> None:
    funnel, calls, whole = Funnel(loaded), [], UserTower.__call__

    def counted(self: UserTower, inputs: Any) -> Any:
        calls.append(inputs)
        return whole(self, inputs)

    monkeypatch.setattr(UserTower, "__call__", counted)
    monkeypatch.setattr(PrerankStage, "reads_towers", read)
    answer = funnel.rank(RankQuery(user, 5, recent_items=recent), Deadline(None))
    assert len(calls) == computed
    assert len(answer.items) == 5
