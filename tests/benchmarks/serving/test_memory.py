"""Memory under mixed requests: that it does not grow is this test's to say, by how little a longer run of the bench."""

from __future__ import annotations

import pytest

from benchmarks.serving.memory import KINDS, MixedLoad, growth, main
from tests.benchmarks.printed_figures import last_line, refuses

MOST_GROWTH = 16  # megabytes, of a server that has some 150 of its own


def test_growth_is_of_what_follows_the_settling() -> None:
    found = growth([(second, 100.0 if second >= 25 else 10.0 * second) for second in range(100)], 100.0)
    assert (found["megabytes_settled"], found["megabytes_at_the_end"]) == (100.0, 100.0)
    assert found["megabytes_an_hour"] == pytest.approx(0, abs=1e-6)
    assert growth([(second, 2.0 * second) for second in range(100)], 100.0)["megabytes_an_hour"] == pytest.approx(7200)


def test_every_kind_is_asked_for_in_turn() -> None:
    load = MixedLoad("127.0.0.1:1", ["u1"], 1.0)
    asked = [load.request("u1") for _ in range(2 * len(KINDS))]
    assert asked[: len(KINDS)] == asked[len(KINDS) :]
    assert len({one.SerializeToString() for one in asked}) == len(KINDS)


def test_wrong_options_are_refused() -> None:
    assert refuses(main, "some/bundle", "--rate", "fast")


@pytest.mark.slow
def test_memory_does_not_grow(bundle_folder, capsys: pytest.CaptureFixture[str]) -> None:
    main([str(bundle_folder), "--seconds", "36", "--rate", "100", "--json"])
    found = last_line(capsys.readouterr().out)["memory"]
    assert found["codes"].keys() <= {"OK", "INVALID_ARGUMENT", "RESOURCE_EXHAUSTED"}
    assert found["codes"]["OK"] > found["codes"]["INVALID_ARGUMENT"] > 0
    assert found["megabytes_at_the_end"] < found["megabytes_settled"] + MOST_GROWTH
