"""What every command gets: where it writes, errors as a sentence, JSON as the last line."""

from __future__ import annotations

import json
from pathlib import Path

from sluice.commands.command import console, opened, show

EXAMPLES = Path(__file__).parents[3] / "examples"


def test_without_out_everything_lies_below_the_configurations_name():
    path = EXAMPLES / "movielens_100k.toml"
    config, artifacts = opened(path, None)
    assert artifacts.out == Path("out") / config.name == Path("out/movielens_100k")
    assert opened(path, Path("elsewhere"))[1].out == Path("elsewhere")


def test_a_result_is_printed_only_where_json_is_wanted(capsys):
    show({"a": 1}, as_json=False)
    assert capsys.readouterr().out == ""
    show({"a": 1, "path": Path("x")}, as_json=True)
    assert json.loads(capsys.readouterr().out) == {"a": 1, "path": "x"}


def test_lines_of_progress_go_to_standard_error_and_are_not_wrapped_early():
    assert console().stderr
    assert console().is_terminal or console().width == 120
