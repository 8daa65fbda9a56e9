"""The command as a user types it: help, exit codes, one sentence per error."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest
from typer.main import get_command
from typer.testing import CliRunner, Result

from sluice.cli import app, benchmarks, main

ROOT = Path(__file__).parents[2]
GROUP = get_command(app)
assert isinstance(GROUP, click.Group)
COMMANDS = GROUP.commands
NEEDS_OUT = [name for name, command in COMMANDS.items() if any("--out" in one.opts for one in command.params)]


def sluice(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


def test_help_names_every_command_and_the_exit_codes():
    done = sluice("--help")
    assert done.exit_code == 0
    assert all(name in done.stdout for name in COMMANDS)
    assert "3 refused by a gate" in done.stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_shows_an_example_and_what_each_of_its_parameters_is(name):
    done = sluice(name, "--help")
    assert done.exit_code == 0
    assert f"sluice {name} " in done.stdout.split("Example:")[1]
    assert "\\" not in done.stdout
    for parameter in COMMANDS[name].params:
        assert "".join((parameter.help or "").split()) in "".join(done.stdout.split())
    assert ("[required]" in done.stdout) == any(parameter.required for parameter in COMMANDS[name].params)


def test_arguments_have_their_help():
    assert "the run's TOML file" in sluice("features", "--help").stdout
    assert "the --out folder of a run" in sluice("register", "--help").stdout


def test_the_process_returns_the_exit_code_and_says_the_sentence_without_a_traceback(tmp_path):
    command = [sys.executable, "-m", "sluice.cli", "serve", str(tmp_path), "--port", "0"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=120)
    assert done.returncode == 1
    assert "is no bundle" in done.stderr
    assert "Traceback" not in done.stderr


def test_every_command_that_writes_knows_where_to():
    assert {"run", "features", "crosses", "pretrain", "train", "prerank", "bundle", "federate"} <= set(NEEDS_OUT)
    assert not any(one.required for name in NEEDS_OUT for one in COMMANDS[name].params if "--out" in one.opts)


def test_wrong_use_exits_2():
    assert sluice("demo", "--evnts", "5").exit_code == 2
    assert sluice("nonsense").exit_code == 2


def test_a_wrong_configuration_exits_2_with_all_problems_and_no_traceback(tmp_path):
    (tmp_path / "bad.toml").write_text('name = "x"\n[log]\npath = "p"\nuser = "u"\n[label]\nexpression = "y"\n')
    done = sluice("run", str(tmp_path / "bad.toml"), "--out", str(tmp_path / "out"))
    assert done.exit_code == 2
    assert "log.user: unknown key; did you mean 'user_id'?" in done.stderr
    assert "fields" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("verify", "{dir}"), "is no bundle"),
        (("report", "{dir}"), "has no summary.json"),
        (("train", "examples/movielens_100k.toml", "--out", "{dir}/none"), "run `sluice features`"),
        (("bundle", "examples/movielens_100k.toml", "--out", "{dir}/none"), "run `sluice train`"),
        (("rank", "--user", "u", "--target", "127.0.0.1:1", "--timeout", "1"), "UNAVAILABLE"),
    ],
)
def test_a_job_without_its_input_exits_1_and_says_what_to_do(arguments, sentence, tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    done = sluice(*(argument.format(dir=tmp_path) for argument in arguments))
    assert done.exit_code == 1
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("out", ["afile", "afile/x"])
@pytest.mark.parametrize("name", ["run", "train", "demo", "tune"])
def test_a_file_in_the_place_of_the_output_folder_is_said_in_one_sentence(name, out, tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    (tmp_path / "afile").touch()
    config = [] if name == "demo" else ["examples/movielens_100k.toml"]
    done = sluice(name, *config, "--out", str(tmp_path / out))
    assert done.exit_code in (1, 2)
    assert "--out" in done.stderr
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(("told", "found"), [(None, "PASSIVE"), ("ACTIVE", "ACTIVE")])
def test_threads_of_openmp_sleep_as_they_wait_unless_the_environment_says_otherwise(monkeypatch, told, found):
    monkeypatch.setattr(sys, "argv", ["sluice", "--version"])
    monkeypatch.setenv("OMP_WAIT_POLICY", told or "")
    if told is None:
        monkeypatch.delenv("OMP_WAIT_POLICY")
    with pytest.raises(SystemExit):
        main()
    assert os.environ["OMP_WAIT_POLICY"] == found


def test_an_unknown_benchmark_is_refused_with_the_list():
    done = sluice("bench", "nothing")
    assert done.exit_code == 2
    assert "there are:" in done.stderr


def test_a_benchmark_has_a_help_of_its_own_and_so_has_the_command(capfd):
    assert sluice("bench", "funnel", "--help").exit_code == 0
    assert "--requests REQUESTS" in capfd.readouterr().out
    assert "Usage: sluice bench" in sluice("bench", "--help").stdout


def test_a_benchmark_begins_with_what_its_figures_need_on_record(capfd):
    """Of one that ends at once, by a number that is none."""
    assert sluice("bench", "funnel", "--items", "few").stdout.startswith("sluice bench funnel --items few  (20")
    assert "invalid int value: 'few'" in capfd.readouterr().err


def test_every_benchmark_that_is_offered_is_a_file_that_starts():
    found = benchmarks()
    assert "funnel" in found
    assert all((ROOT / f"{module.replace('.', '/')}.py").exists() for module in found.values())


def test_the_demo_refuses_a_folder_with_strange_files(tmp_path):
    (tmp_path / "thesis.doc").write_text("")
    done = sluice("demo", "--out", str(tmp_path), "--events", "20000")
    assert done.exit_code == 1
    assert "not empty and no demo made it" in done.stderr
    assert (tmp_path / "thesis.doc").exists()
