from __future__ import annotations

from pathlib import Path

import pytest

from contracts.artifacts import Artifacts
from contracts.config.config import Config
from contracts.errors import ConfigError
from sluice.run.prerank_job import choose_pre_ranker


@pytest.mark.parametrize("roles", [{}, {"item_id": "item"}, {"event_time": "time"}])
def test_without_items_or_times_there_are_no_past_requests_to_choose_on(roles: dict[str, str], tmp_path: Path) -> None:
    config = Config.model_validate({
        "name": "t", "log": {"path": "log", **roles}, "label": {"expression": "y"},
        "fields": [{"name": "x", "kind": "categorical", "side": "context"}],
    })
    with pytest.raises(ConfigError, match=r"set log\.item_id and log\.event_time"):
        choose_pre_ranker(config, Artifacts(tmp_path), None, None, lambda what, done, total: None)
    assert list(tmp_path.iterdir()) == []
