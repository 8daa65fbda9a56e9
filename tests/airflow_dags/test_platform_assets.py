"""Each asset is made by one scheduled task, and somebody waits for it or reads it."""

from __future__ import annotations

from airflow.sdk import DAG

from airflow_dags.platform_assets import CHAMPION, CROSSES, FEATURES

ASSETS = {asset.name for asset in (CHAMPION, CROSSES, FEATURES)}


def test_one_task_makes_each_asset_and_a_backfill_makes_features_again(dags: dict[str, DAG]) -> None:
    makers = sorted((asset.name, dag.dag_id, task.task_id)
                    for dag in dags.values() for task in dag.tasks for asset in task.outlets)
    assert makers == [("sluice-champion", "daily_ranking", "promote"),
                      ("sluice-crosses", "weekly_cross_search", "publish"),
                      ("sluice-features", "backfill_features", "quality"),
                      ("sluice-features", "daily_ranking", "features")]


def test_every_asset_is_waited_for_or_read(dags: dict[str, DAG]) -> None:
    waiting = {name: str(getattr(dags[name].timetable, "asset_condition", ""))
               for name in ("federated_rounds", "retention")}
    assert CROSSES.name in waiting["federated_rounds"]
    assert CHAMPION.name in waiting["retention"]
    read = {asset.name: dag.dag_id for dag in dags.values() for task in dag.tasks for asset in task.inlets}
    assert read == {CROSSES.name: "daily_ranking", FEATURES.name: "weekly_cross_search"}
    assert set(read) | {CHAMPION.name} == ASSETS
