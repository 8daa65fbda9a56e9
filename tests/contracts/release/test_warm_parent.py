"""Where training started is read back, a cold start too."""

from __future__ import annotations

import pytest
from pydantic import JsonValue

from contracts.release.warm_parent import WarmParent

WINDOWS: JsonValue = {"train": ["2026-01-02T00:00:00+00:00", "2026-01-09T00:00:00+00:00"]}


@pytest.mark.parametrize("given", [
    WarmParent(asked="models:/shop@champion", windows=WINDOWS, version="shop-1", content_hash="c0ffee"),
    WarmParent(asked="models:/shop@champion", windows=WINDOWS), WarmParent(asked=""),
])
def test_it_is_read_back(given: WarmParent) -> None:
    assert WarmParent.model_validate_json(given.model_dump_json()) == given
