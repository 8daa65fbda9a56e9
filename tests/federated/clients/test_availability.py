from __future__ import annotations

import pytest

from contracts.config.federated import Federated
from contracts.errors import ConfigError, DataError
from federated.clients.availability import alternating, always, at_random, day_cycle, of_config, trace


def test_always_means_everybody():
    assert always(3)(7) == [0, 1, 2]


def test_groups_take_turns_by_halves_of_the_period():
    there = alternating([0, 1, -1], period=4)
    assert [there(number) for number in range(1, 7)] == [[0, 2], [0, 2], [1, 2], [1, 2], [0, 2], [0, 2]]
    with pytest.raises(ConfigError, match="no two halves"):
        alternating([0, 1], period=1)


def test_each_client_has_its_hours_of_the_day():
    there = day_cycle([0.0, 0.5, 0.9], share=0.5, rounds_a_day=10)
    for client, expected in ((0, 5), (1, 5), (2, 5)):
        assert sum(client in there(number) for number in range(1, 11)) == expected
    assert there(1) == there(11) == [0, 2]


def test_chance_is_the_same_for_the_same_round_and_comes_to_its_probability():
    there = at_random([0.0, 0.3, 1.0], seed=5)
    assert there(17) == there(17)
    visits = [there(number) for number in range(1, 2001)]
    assert not any(0 in found for found in visits)
    assert all(2 in found for found in visits)
    assert sum(1 in found for found in visits) / 2000 == pytest.approx(0.3, abs=0.05)


def test_a_trace_is_followed_and_starts_over(tmp_path):
    path = tmp_path / "trace"
    path.write_text("2 0\n\n1\n")
    there = trace(path, 3)
    assert [there(number) for number in range(1, 5)] == [[0, 2], [], [1], [0, 2]]


@pytest.mark.parametrize("text", ["", "0 9", "zero"])
def test_a_trace_of_something_else_is_refused(tmp_path, text):
    path = tmp_path / "trace"
    path.write_text(text)
    with pytest.raises(DataError):
        trace(path, 3)


def test_what_is_wrong_with_a_trace_is_named(tmp_path):
    path = tmp_path / "trace"
    path.write_text("0 1\n2 x\n")
    with pytest.raises(DataError, match=r"line 2 of .* names 'x'; clients are numbers from 0 to 2"):
        trace(path, 3)
    with pytest.raises(DataError, match="cannot be read"):
        trace(tmp_path, 3)
    for half in ({"availability": "trace"}, {"availability_trace": "there.txt"}):
        with pytest.raises(ValueError, match="go together"):
            Federated(**half)


def test_the_configuration_names_a_pattern(tmp_path):
    def there(number, **settings):
        return of_config(Federated(**settings), range(4), seed=1)(number)

    path = tmp_path / "trace"
    path.write_text("3\n")
    assert there(1) == [0, 1, 2, 3]
    assert there(1, availability="alternating", availability_period=2) == [0, 2]
    assert there(2, availability="alternating", availability_period=2) == [1, 3]
    assert there(1, availability="random", availability_share=0.0) == []
    assert there(1, availability="day_cycle", availability_share=1.0) == [0, 1, 2, 3]
    assert there(9, availability="trace", availability_trace=str(path)) == [3]


def test_clients_of_one_kind_come_together():
    settings = Federated(availability="day_cycle", availability_period=12, availability_share=0.25)
    kinds = [7, 3, 7, 7, 3]
    reachable = of_config(settings, kinds, seed=1)
    seen = {tuple(reachable(number)) for number in range(1, 13)}
    assert seen <= {(), (0, 2, 3), (1, 4), (0, 1, 2, 3, 4)}
    assert len(seen) > 1
