from __future__ import annotations

from benchmarks.models.training import floor, main
from tests.benchmarks.printed_figures import all_finite, last_line, refuses


def test_training_stands_beside_the_same_layers_alone(capsys):
    main(["--rows", "600", "--batch", "64"])
    text = capsys.readouterr().out
    found = last_line(text)
    assert set(found) == {"dnn", "floor"}
    assert all_finite(found)
    assert f"{found['dnn'] / found['floor']:.2f} of the floor" in text


def test_the_floor_is_a_rate_of_plain_torch():
    assert floor(width=8, batch=16, updates=2) > 0


def test_a_wrong_option_is_refused():
    assert refuses(main, "--batch", "large")
