"""What every command gets: where it writes, errors as a sentence, JSON as the last line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.main import get_command
from typer.testing import CliRunner

from sluice.cli import app
from sluice.commands.command import console, opened, server_address, show, utf8

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


@pytest.mark.parametrize("target", ["localhost", "localhost:", ":50051", "http://localhost:80", "localhost:0",
                                    "localhost:99999", "one:50051,two", "a b:1", "one:50051,"])
def test_an_address_without_a_port_is_refused(target):
    refused = CliRunner().invoke(app, ["rank", "--user", "u1", "--target", target])
    assert refused.exit_code == 2
    assert "is no HOST:PORT, such as 127.0.0.1:50051" in " ".join(refused.output.split())


@pytest.mark.parametrize("target", ["localhost:50051", "one:1, two:65535", "[::1]:50051", "dns:///host:50051",
                                    "unix:/run/sluice.sock"])
def test_addresses_are_taken_as_grpc_takes_them(target):
    assert server_address(target) == target


def test_text_that_is_utf_8_is_given_back_and_other_refused():
    for given in (None, "über", ["a", "b"], []):
        assert utf8(given) == given
    for wrong in ("a\udcff", ["a", "a\udcff"]):
        with pytest.raises(typer.BadParameter, match=r"^'a\\udcff' is not UTF-8; "):
            utf8(wrong)


def test_help_and_a_wrong_name_say_everything_once():
    help_ = CliRunner().invoke(app, ["serve", "--help"]).output
    assert help_.count("a bundle's folder, or models:/NAME@ALIAS") == 1
    assert help_.count("BUNDLE  ") == 1
    wrong = CliRunner().invoke(app, ["servee"])
    assert wrong.exit_code == 2
    assert wrong.output.count("Did you mean 'serve'?") == 1


def test_lines_of_progress_go_to_standard_error_and_are_not_wrapped_early():
    assert console().stderr
    assert console().is_terminal or console().width == 120


@pytest.mark.parametrize("name", ["run", "features", "federate"])
def test_the_address_of_the_data_is_kept_as_it_was_written(name):
    command = get_command(app).commands[name]  # type: ignore[attr-defined]
    arguments = [str(EXAMPLES / "movielens_100k.toml"), "--data", "s3a://bucket/logs", "--out", "here"]
    given = command.make_context(name, arguments).params
    assert (given["data"], given["out"]) == ("s3a://bucket/logs", Path("here"))


@pytest.mark.parametrize("address", ["s3a://bucket/out", "gs://bucket/out", "hdfs://name/out", "file:/tmp/out"])
def test_an_object_store_is_refused_as_the_place_of_results_in_one_sentence(address):
    for name in ("features", "train", "run"):
        found = CliRunner().invoke(app, [name, str(EXAMPLES / "movielens_100k.toml"), "--out", address])
        assert found.exit_code == 2
        assert f"{address} is the address of an object store" in " ".join(found.output.split())
    assert CliRunner().invoke(app, ["demo", "--out", address]).exit_code == 2


def test_what_writes_is_refused_while_another_command_writes_there_and_what_reads_is_not(tmp_path):
    code = ("import sys; from pathlib import Path; from sluice.out_folder.one_writer import one_writer\n"
            "with one_writer(Path(sys.argv[1]), 'run'): print(flush=True); sys.stdin.read()")
    config, out = str(EXAMPLES / "movielens_100k.toml"), ["--out", str(tmp_path)]
    with subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          ) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        for name in ("run", "features", "crosses", "pretrain", "train", "prerank", "bundle", "federate", "demo"):
            found = CliRunner().invoke(app, [name, *([] if name == "demo" else [config]), *out])
            assert found.exit_code == 1
            assert f"`sluice run` (process {holder.pid}) has been writing to {tmp_path} since" in found.output
        assert "has been writing" not in CliRunner().invoke(app, ["quality", config, *out]).output
        assert "has been writing" not in CliRunner().invoke(app, ["report", str(tmp_path)]).output
    assert "has been writing" not in CliRunner().invoke(app, ["train", config, *out]).output


@pytest.mark.parametrize("words", [
    ["serve", "bundle", "--fresh", ""], ["serve", "bundle", "--log-answers", ""], ["serve", "bundle", "--cache="],
    ["verify", ""], ["features", "run.toml", "--out", ""], ["serve", "bundle", "--metrics-port=0", "--records", ""]])
def test_an_empty_path_is_not_the_folder_that_one_is_in(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    refused = CliRunner().invoke(app, words)
    assert refused.exit_code == 2
    assert "is empty; give a path, . for the folder" in " ".join(refused.output.split())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", ["nan", "inf", "1e400"])
@pytest.mark.parametrize("words", [["serve", "bundle", "--poll-seconds"], ["rank", "--user", "u", "--timeout"]])
def test_a_number_that_is_none_lies_within_no_bounds(words: list[str], number: str) -> None:
    refused = CliRunner().invoke(app, [*words, number])
    assert refused.exit_code == 2
    said = " ".join(refused.output.split())
    assert f"'{words[-1]}'" in said
    assert any(part in said for part in ("is no number to count with", "is not in the range"))
