"""docs/reference/command_line.md, written from the commands themselves: `python -m sluice.dev.command_reference`."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

from click import Argument, Command, Context, Option, Parameter
from typer.main import get_group

from sluice.cli import app, benchmarks

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "command_line.md"
HEAD = """# The command line

`sluice COMMAND --help` says the same. Exit codes: 0 done, 1 failed, 2 wrong use, 3 refused by a gate, 4 the watch wants
a roll-back. Where `--out` is not given it is `out/NAME` of the configuration. `--json` prints one JSON object as the
last line, whatever else a command prints. This page is written from the commands themselves.
"""


def page() -> str:
    """Markdown."""
    group = get_group(app)
    with Context(group) as context:
        sections = [_section(name, command) for name in sorted(group.list_commands(context))
                    if (command := group.get_command(context, name)) is not None]
    return "\n".join([HEAD, *sections, _benchmarks()])


def _section(name: str, command: Command) -> str:
    what, example = _told(command)
    arguments = " ".join(_placeholder(one) for one in command.params if isinstance(one, Argument))
    lines = [f"## `sluice {name}{' ' + arguments if arguments else ''}`", "", what, ""]
    if example:
        lines += ["```sh", example, "```", ""]
    options = [one for one in command.params if isinstance(one, Option) and one.name != "help" and not one.hidden]
    if options:
        lines += ["| option | meaning |", "|---|---|", *(_row(one) for one in options), ""]
    return "\n".join(lines)


def _told(command: Command) -> tuple[str, str]:
    """The help of a command in one paragraph a blank line, and its example."""
    text = inspect.cleandoc(command.help or "").replace("\b\n", "")
    body, _, example = text.partition("Example:")
    paragraphs = [" ".join(one.split()) for one in body.split("\n\n") if one.strip()]
    return "\n\n".join(paragraphs), " ".join(example.split())


def _placeholder(argument: Parameter) -> str:
    name = (argument.metavar or argument.name or "").strip("[]")
    return name if argument.required else f"[{name}]"


def _row(option: Option) -> str:
    names = ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
    notes = " ".join((option.help or "").split())
    if option.required:
        notes += " (required)"
    elif option.default not in (None, "") and isinstance(option.default, str | int | float | Path) \
            and not isinstance(option.default, bool):
        notes += f" (`{option.default}`)"
    return f"| {names} | {re.sub(r'(?<!`)[|]', chr(92) + '|', notes)} |"


def _benchmarks() -> str:
    names = ", ".join(f"`{name}`" for name in benchmarks())
    return f"Benchmarks that `sluice bench` knows: {names}. Each has its own `--help`.\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
