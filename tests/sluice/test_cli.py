"""The command as a user types it: help, exit codes, one sentence per error."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from sluice.cli import app

ROOT = Path(__file__).parents[2]
COMMANDS = [command.name or getattr(command.callback, "__name__", "") for command in app.registered_commands]


def sluice(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "sluice.cli", *arguments], capture_output=True, text=True, cwd=ROOT, timeout=120
    )


def test_help_names_every_command_and_the_exit_codes():
    done = sluice("--help")
    assert done.returncode == 0
    assert all(name in done.stdout for name in COMMANDS)
    assert "3 refused by a gate" in done.stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_shows_an_example(name):
    done = sluice(name, "--help")
    assert done.returncode == 0
    assert f"sluice {name} " in done.stdout.split("Example:")[1]


def test_wrong_use_exits_2():
    assert sluice("demo", "--evnts", "5").returncode == 2
    assert sluice("nonsense").returncode == 2


def test_a_wrong_configuration_exits_2_with_all_problems_and_no_traceback(tmp_path):
    (tmp_path / "bad.toml").write_text('name = "x"\n[log]\npath = "p"\nuser = "u"\n[label]\nexpression = "y"\n')
    done = sluice("run", str(tmp_path / "bad.toml"), "--out", str(tmp_path / "out"))
    assert done.returncode == 2
    assert "log.user: unknown key; did you mean 'user_id'?" in done.stderr
    assert "fields" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("verify", "{dir}"), "is no bundle"),
        (("serve", "{dir}", "--port", "0"), "is no bundle"),
        (("report", "{dir}"), "has no summary.json"),
        (("train", "examples/movielens_100k.toml", "--out", "{dir}/none"), "run `sluice features`"),
        (("bundle", "examples/movielens_100k.toml", "--out", "{dir}/none"), "run `sluice train`"),
        (("rank", "--user", "u", "--target", "127.0.0.1:1", "--timeout", "1"), "UNAVAILABLE"),
    ],
)
def test_a_step_without_its_input_exits_1_and_says_what_to_do(arguments, sentence, tmp_path):
    done = sluice(*(argument.format(dir=tmp_path) for argument in arguments))
    assert done.returncode == 1
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr


def test_an_unknown_benchmark_is_refused_with_the_list():
    done = sluice("bench", "nothing")
    assert done.returncode == 2
    assert "there are:" in done.stderr


def test_the_demo_refuses_a_folder_with_strange_files(tmp_path):
    (tmp_path / "thesis.doc").write_text("")
    done = sluice("demo", "--out", str(tmp_path), "--events", "20000")
    assert done.returncode == 1
    assert "not empty and no demo made it" in done.stderr
    assert (tmp_path / "thesis.doc").exists()
