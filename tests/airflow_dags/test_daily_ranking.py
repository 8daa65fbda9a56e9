"""daily_ranking: its way from the first task to the last, and the tasks that are more than a command."""

from __future__ import annotations

import pytest
from airflow.sdk import DAG
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException

from airflow_dags.daily_ranking import picked_up, roll_back, watch
from tests.airflow_dags.dag_rules import arrows, in_a_row
from tests.airflow_dags.fake_platform import FakePlatform

WAY = ("crosses_of_the_week", "features", "quality", "pretrain", "train", "prerank", "bundle", "verify", "register",
       "promote", "picked_up", "watch", "roll_back")


def test_a_day_goes_one_way_from_crosses_to_roll_back(dags: dict[str, DAG]) -> None:
    expected = in_a_row(*WAY)
    expected["picked_up"] |= {"roll_back"}  # which takes the version from it
    assert arrows(dags["daily_ranking"]) == expected


def test_a_refused_day_holds_up_the_days_after_it(dags: dict[str, DAG]) -> None:
    held_up = [task.task_id for task in dags["daily_ranking"].tasks if task.depends_on_past]
    assert held_up == ["quality"]


def test_where_nothing_is_served_there_is_nothing_to_wait_for(platform: FakePlatform) -> None:
    platform.variables(sluice_serving="")
    with pytest.raises(AirflowSkipException):
        picked_up.function(platform.registered("run"), "5")
    assert platform.calls == []


def test_a_version_is_picked_up_when_an_answer_carries_it(platform: FakePlatform) -> None:
    platform.variables(sluice_serving="shop:50051")
    platform.answer("rank", """echo loading; echo '{"items": [], "bundleVersion": "shop-1"}'""")
    assert picked_up.function(platform.registered("run"), "5") == "shop-1"
    assert platform.calls == [["rank", "--user", "airflow", "--target", "shop:50051", "--timeout", "5", "--json"]]


@pytest.mark.parametrize("answer", ["""echo '{"bundleVersion": "shop-0"}'""", "echo nobody listens; exit 1"])
def test_a_server_that_does_not_follow_is_tried_again(platform: FakePlatform, answer: str) -> None:
    platform.variables(sluice_serving="shop:50051")
    platform.answer("rank", answer)
    with pytest.raises(AirflowException, match=r"does not serve shop-1 after 0\.2 s; it answers") as caught:
        picked_up.function(platform.registered("run"), "0.2")
    assert not isinstance(caught.value, AirflowFailException)


@pytest.mark.parametrize(("registration", "sentence"), [
    ('{"name": "shop", "tags": {}}', "no text under 'tags.bundle_version'"),
    ('{"tags": {"bundle_version": "shop-1"}}', "no text under 'name'"),
    ('{"name": "shop", "tags": {"bundle_version": 7}}', "no text under 'tags.bundle_version'"),
    ("[]", "holds list"), ('{"name"', "is no JSON"),
])
def test_a_record_of_another_kind_fails_the_run_at_once(
    platform: FakePlatform, registration: str, sentence: str
) -> None:
    platform.variables(sluice_serving="shop:50051")
    out = platform.wrote("run", registration)
    for task, given in ((picked_up, (out, "5")), (roll_back, (out, "shop-1"))):
        with pytest.raises(AirflowFailException, match=sentence):
            task.function(*given)
    assert platform.calls == []


def test_a_run_without_a_record_fails_at_once(platform: FakePlatform) -> None:
    with pytest.raises(AirflowFailException, match="`sluice register` has not run here"):
        roll_back.function(str(platform.folder / "none"), "shop-1")


def test_an_answer_without_a_version_fails_the_run_at_once(platform: FakePlatform) -> None:
    platform.variables(sluice_serving="shop:50051")
    platform.answer("rank", """echo '{"items": []}'""")
    with pytest.raises(AirflowFailException, match="bundleVersion"):
        picked_up.function(platform.registered("run"), "5")


@pytest.mark.parametrize(("code", "wanted"), [(0, False), (4, True)])
def test_the_watch_says_whether_to_roll_back(platform: FakePlatform, code: int, wanted: bool) -> None:
    platform.variables(sluice_answers="/answers", sluice_clicks="")
    platform.answer("watch", f"exit {code}")
    assert watch.function(["watch", "shop.toml"], "shop-1", "0", "1") is wanted
    assert platform.calls == [["watch", "shop.toml", "--answers", "/answers", "--bundle", "shop-1"]]


def test_the_watch_looks_again_until_its_time_is_over_or_a_roll_back_is_wanted(platform: FakePlatform) -> None:
    platform.variables(sluice_answers="/answers", sluice_clicks="/clicks")
    platform.answer("watch", f"test $(grep -c watch {platform.folder}/calls) -lt 3 || exit 4")
    assert watch.function(["watch", "shop.toml"], "shop-1", "60", "0.01") is True
    assert len(platform.calls) == 3
    assert platform.calls[0][2:4] == ["--clicks", "/clicks"]


def test_the_roll_back_leaves_this_version_alone_behind(platform: FakePlatform) -> None:
    roll_back.function(platform.registered("run", "shop-7"), "shop-7")
    assert platform.calls == [["rollback", "shop", "--only", "shop-7"]]
