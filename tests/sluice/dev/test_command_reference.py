from __future__ import annotations

from sluice.cli import app
from sluice.dev.command_reference import PAGE, page


def test_the_page_in_the_repository_is_the_one_that_the_commands_give() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run python -m sluice.dev.command_reference"


def test_every_command_and_its_example_is_there() -> None:
    text = page()
    for command in app.registered_commands:
        name = command.name or getattr(command.callback, "__name__", "")
        assert f"## `sluice {name}" in text
        assert "Example:" not in text
        assert f"\nsluice {name} " in text, name


def test_options_say_what_they_mean_and_where_they_start() -> None:
    assert "| `--port` | " in page()
    assert "(`127.0.0.1:50051`)" in page()
