from __future__ import annotations

import numpy as np
import pytest

from sluice.fresh_demo.figures import Columns, gained, gains, hour_run, share
from sluice.fresh_demo.lived_hour import NEWS, live
from tests.sluice.fresh_demo.small_hour import LIMIT, Told, small_hour


def columns(seed: int, users: int = 400, each: int = 3) -> Columns:
    """Users who differ in how much of the best they are shown."""
    draw = np.random.default_rng(seed)
    user = np.repeat(np.arange(users) * 7, each)
    best = draw.uniform(0.5, 2.0, len(user))
    worth = best * np.repeat(draw.uniform(0.2, 0.9, users), each)
    return Columns(user, np.linspace(0, 60, len(user)), np.zeros(len(user), dtype=bool), worth, best, best,
                   np.zeros(len(user)))


def jackknife(run: Columns, other: Columns | None = None) -> float:
    """Of the share, or of the difference to another run's, with one user left out at a time."""
    def statistic(kept: np.ndarray) -> float:
        found = run.worth[kept].sum() / run.best[kept].sum()
        return found - (other.worth[kept].sum() / other.best[kept].sum() if other else 0.0)

    users = np.unique(run.user)
    left = np.array([statistic(run.user != user) for user in users])
    return float(np.sqrt((len(users) - 1) / len(users) * ((left - left.mean()) ** 2).sum()))


def test_the_standard_error_is_that_of_leaving_out_one_user_at_a_time() -> None:
    run = columns(1)
    assert share(run).share == pytest.approx(run.worth.sum() / run.best.sum())
    assert share(run).standard_error == pytest.approx(jackknife(run), rel=0.02)


def test_a_paired_difference_has_the_error_of_the_difference_and_not_of_two_shares() -> None:
    run = columns(1)
    better = run._replace(worth=run.worth * 1.05)
    found = gained(run, better)
    assert found.share == pytest.approx(0.05 * share(run).share)
    assert found.standard_error == pytest.approx(jackknife(better, run), rel=0.02)
    assert found.standard_error < 0.1 * share(run).standard_error
    assert gained(run, run) == found.model_copy(update={"share": 0.0, "standard_error": 0.0})


def test_every_run_is_compared_with_the_one_before_and_the_last_with_the_first() -> None:
    runs = {name: columns(seed) for seed, name in enumerate(("a", "b", "c"))}
    assert list(gains(runs, auction=False)) == ["b over a", "c over b", "c over a"]


def test_the_slices_of_ten_minutes_add_up_to_the_hour() -> None:
    hour = small_hour()
    server = Told(hour)
    lived = live(hour, NEWS[0], server, {}, LIMIT)  # type: ignore[arg-type]
    found = hour_run(Columns.of(hour, lived), lived, server)  # type: ignore[arg-type]
    assert [part.minute for part in found.slices] == [0, 10, 20, 30, 40, 50]
    assert sum(part.lost for part in found.slices) == pytest.approx(found.lost)
    assert found.lost > 0
    clicks = [visit for visit, asked in zip(lived, hour.visits, strict=True) if not asked.auction]
    assert found.clicks.share == pytest.approx(sum(v.worth for v in clicks) / sum(v.best for v in clicks))
    assert found.places == sum(visit.places for visit in lived) == LIMIT * len(hour.visits)
