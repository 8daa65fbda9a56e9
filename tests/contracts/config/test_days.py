from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from contracts.config.days import Gate, Quality, Watch


@pytest.mark.parametrize("limits", [{"rows": (1, 9)}, {"label_rate": (0.1, 0.2)}, {"psi.city": 0.3, "churn.city": 1}])
def test_limits_of_a_days_figures(limits: dict[str, Any]) -> None:
    assert Quality(limits=limits).limits == limits


@pytest.mark.parametrize("limits", [{"rows": 5.0}, {"nulls.city": 0.1}, {"psi": 0.1}, {"psi.city": (0.1, 0.2)}])
def test_a_limit_of_no_figure_or_of_the_wrong_shape_is_refused(limits: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="take"):
        Quality(limits=limits)


def test_a_ratio_that_a_bundle_must_not_exceed_is_above_one() -> None:
    for kind, key in ((Gate, "max_latency_ratio"), (Watch, "max_p99_ratio")):
        with pytest.raises(ValidationError, match=key):
            kind.model_validate({key: 1.0})
