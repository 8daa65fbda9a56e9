from __future__ import annotations

import json

from contracts.summaries.federated import BothWays, RoundFigures

ROUND = RoundFigures(
    round=1, clients=20, loss=0.4, union=100, declared=12.5, lost={"update": 1}, seconds_per_phase={"keys": 0.1},
    abandoned=0, bytes={"update": BothWays(up=10.0, down=20.0)}, waited=0, seconds=1.5,
)


def test_a_round_comes_back_from_json() -> None:
    assert RoundFigures.model_validate(json.loads(json.dumps(ROUND.plain()))) == ROUND


def test_what_noise_hides_and_what_was_not_evaluated_is_not_written() -> None:
    hidden = ROUND.model_copy(update={"loss": None})
    assert {"loss", "kept", "auc", "auc_validation"}.isdisjoint(hidden.plain())
