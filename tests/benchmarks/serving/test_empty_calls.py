"""Calls that do nothing, beside a real server of gRPC."""

from __future__ import annotations

from pathlib import Path

import grpc
import pytest

from benchmarks.serving.empty_calls import (
    METHOD,
    SERVICE,
    TURN,
    WARM_UP,
    answered,
    bare_server,
    funnel_of,
    in_turns,
    light,
    stages_ms,
)
from benchmarks.serving.funnel import USERS, VALUES, world
from benchmarks.serving.open_loop import request
from benchmarks.serving.synthetic_bundle import publish
from contracts.errors import SluiceError
from serving.access.role import RANKING_SERVICE
from serving.proto import sluice_pb2 as pb
from serving.request.deadline import Deadline
from serving.request.query import RankAnswer, RankQuery
from serving.stages.funnel import Funnel


@pytest.mark.slow
def test_the_bare_server_says_back_what_it_is_told_and_ends_with_us() -> None:
    with bare_server() as target, grpc.insecure_channel(target) as channel:
        say = channel.unary_unary(f"/{SERVICE}/{METHOD}")
        assert [say(said, timeout=20) for said in (b"", b"x", b"y" * 10_000)] == [b"", b"x", b"y" * 10_000]
    with grpc.insecure_channel(target) as channel, pytest.raises(grpc.RpcError) as caught:
        channel.unary_unary(f"/{SERVICE}/{METHOD}")(b"", timeout=20)
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE


def test_the_light_caller_is_answered_or_says_why_not() -> None:
    with bare_server() as target:
        with light(target, SERVICE, METHOD) as caller:
            assert answered(caller, b"x") == b"x"
        with light(target, SERVICE, "Sing") as caller, pytest.raises(SluiceError, match="UNIMPLEMENTED"):
            answered(caller, b"x")


def test_stages_take_what_their_answer_says() -> None:
    stages = [pb.StageReport(name=name, microseconds=microseconds) for name, microseconds in (("a", 250), ("b", 500))]
    assert stages_ms(pb.RankResponse(stages=stages).SerializeToString()) == 0.75


def test_calls_take_turns_and_each_is_asked_as_often_as_the_others() -> None:
    asked = list[tuple[str, int]]()
    spent = in_turns((lambda n: asked.append(("a", n)), lambda n: asked.append(("b", n))), TURN + 1)
    turns = [("a", range(WARM_UP)), ("b", range(WARM_UP)), ("a", range(TURN)), ("b", range(TURN)), ("a", [TURN]),
             ("b", [TURN])]
    assert asked == [(name, number) for name, numbers in turns for number in numbers]
    assert [len(one) for one in spent] == [TURN + 1] * 2
    assert all((one > 0).all() for one in spent)


def test_a_bare_server_gives_the_slates_that_ours_gives(tmp_path: Path) -> None:
    made = world(1500, "dnn")
    folder = publish(made, tmp_path, VALUES)
    with bare_server(folder) as target, light(target, RANKING_SERVICE, "Rank") as caller:
        answer = pb.RankResponse.FromString(answered(caller, request(7, USERS, VALUES, False, 0).SerializeToString()))
    wanted = Funnel(made).rank(RankQuery("u7", 10, {"context0": "v7"}), Deadline(None)).items
    assert [one.item_id for one in answer.items] == [one.item for one in wanted]
    assert [one.score for one in answer.items] == pytest.approx([one.score for one in wanted], rel=1e-4)


def test_the_funnel_of_a_folder_answers_as_the_wire_would(tmp_path: Path) -> None:
    folder = publish(world(2000, "dnn"), tmp_path, VALUES)
    answer = funnel_of(folder)(3)
    assert isinstance(answer, RankAnswer)
    assert answer.items
    assert not answer.degraded
