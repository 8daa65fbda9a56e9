"""Laws of turns, of requests whose seconds are set: nothing here hangs on how fast the machine is."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from serving.admission.tenant_turns import TenantTurns


def serve(turns: TenantTurns, seconds: float) -> str:
    """One request of whose turn it is, and another one in its place: its tenant always has as many that wait."""
    tenant = turns.next()
    turns.taken(tenant)
    turns.worked(tenant, seconds)
    turns.came(tenant)
    return tenant


def waiting(shares: dict[str, float], *tenants: str) -> TenantTurns:
    turns = TenantTurns(shares)
    for tenant in tenants:
        turns.came(tenant)
    return turns


@pytest.mark.parametrize("seed", range(5))
def test_of_those_that_always_wait_work_drifts_apart_by_no_more_than_one_request(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shares = {f"t{n}": float(rng.uniform(0.2, 5.0)) for n in range(4)}
    turns, work = waiting(shares, *shares), dict.fromkeys(shares, 0.0)
    longest = dict.fromkeys(shares, 0.0)
    for _ in range(2000):
        tenant, seconds = turns.next(), float(rng.pareto(1.5))
        assert serve(turns, seconds) == tenant
        work[tenant] += seconds / shares[tenant]
        longest[tenant] = max(longest[tenant], seconds / shares[tenant])
        assert max(work.values()) - min(work.values()) <= max(longest.values()) + 1e-9


def test_what_a_request_takes_is_what_its_tenant_pays() -> None:
    """Requests of a hundred times the work are a hundredth of those that are answered."""
    turns, costs = waiting({}, "heavy", "light"), {"heavy": 1.0, "light": 0.01}
    served = Counter(serve(turns, costs[turns.next()]) for _ in range(1010))
    assert served["light"] == pytest.approx(1000, abs=100)


def test_a_tenant_whose_queue_empties_after_each_request_has_no_more_turns_for_it() -> None:
    """It comes again before the next turn, one at a time."""
    turns, spent = waiting({}, "many", "one"), Counter[str]()
    for _ in range(1000):
        tenant = turns.next()
        turns.taken(tenant)
        turns.worked(tenant, 0.5 if tenant == "one" else 0.01)
        spent[tenant] += 50 if tenant == "one" else 1
        turns.came(tenant)
    assert spent["one"] == pytest.approx(spent["many"], abs=51)


def test_what_was_left_unused_is_gone() -> None:
    turns = waiting({}, "always")
    for _ in range(1000):
        serve(turns, 1.0)
    turns.came("late")
    served = Counter(serve(turns, 1.0) for _ in range(10))
    assert served == {"always": 5, "late": 5}


def test_names_that_are_new_with_every_request_do_not_go_first_for_ever() -> None:
    """Eight of them wait at any time, of work that never was; the old tenant has its part beside them."""
    turns, served, count = waiting({}, "old"), Counter[str](), 0
    for _ in range(8):
        turns.came(f"new {count}")
        count += 1
    for _ in range(900):
        tenant = turns.next()
        turns.taken(tenant)
        turns.worked(tenant, 1.0)
        served[tenant.split()[0]] += 1
        turns.came("old" if tenant == "old" else f"new {count}")
        count += 1
    assert served["old"] == pytest.approx(100, abs=10)
    assert len(turns.known) < 40


def test_after_a_rest_nobody_owes_anything() -> None:
    turns = waiting({}, "spent")
    for _ in range(10):
        serve(turns, 1.0)
    turns.came("other")
    for tenant in ("spent", "other"):
        turns.taken(tenant)
    turns.worked("spent", 50.0)
    turns.rested()
    assert not turns.known
    for tenant in ("spent", "other"):
        turns.came(tenant)
    assert Counter(serve(turns, 1.0) for _ in range(10)) == {"spent": 5, "other": 5}


@pytest.mark.parametrize("seed", range(20))
def test_what_is_said_to_be_ahead_is_what_comes_before(seed: int) -> None:
    """Where requests take what those of their tenants took before, and nobody else comes."""
    rng = np.random.default_rng(seed)
    names = [f"t{n}" for n in range(5)]
    shares, costs = ({name: float(rng.uniform(0.3, 3.0)) for name in names} for _ in range(2))
    turns = waiting(shares, *names)
    for _ in range(50):
        serve(turns, costs[turns.next()])
    queues = dict.fromkeys(names, 1)
    for name in names:
        for _ in range(int(rng.integers(0, 6))):
            turns.came(name)
            queues[name] += 1
    ahead, place = turns.ahead("t0", 99.0), queues["t0"]
    turns.came("t0")
    spent = 0.0
    while (tenant := turns.next()) != "t0" or place:
        place -= tenant == "t0"
        turns.taken(tenant)
        turns.worked(tenant, costs[tenant])
        spent += costs[tenant]
    assert ahead == pytest.approx(spent)


def test_of_unknown_tenants_requests_take_what_is_said() -> None:
    turns = waiting({}, "a", "a", "b")
    assert turns.ahead("a", 2.0) == 6.0
    assert turns.ahead("new", 2.0) == 4.0


def test_one_request_that_the_machine_held_up_is_not_what_its_tenants_take() -> None:
    """Its first, of a hundred times what requests take; one that always takes so long is known for it soon."""
    turns = waiting({}, *"abbbb")
    turns.taken("a")
    turns.worked("a", 0.5, 0.005)
    assert turns.next() == "b"
    for _ in range(4):
        turns.came("a")
    assert turns.ahead("a", 0.005) < 4 * 0.11 + 4 * 0.005
    for _ in range(30):
        turns.taken("a")
        turns.worked("a", 0.5, 0.005)
        turns.came("a")
    assert turns.ahead("a", 0.005) > 4 * 0.4
