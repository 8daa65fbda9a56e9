"""`flwr run .` in Flower's simulation engine, and SuperNodes with TLS and node authentication, some of them bad."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys

import pytest

from benchmarks.federated.loopback import (
    NAME,
    ROOT,
    environment,
    flwr,
    free_port,
    name_superlink,
    process,
    wait_for_file,
    wait_for_port,
)
from contracts.config.config import parse
from contracts.summaries import summary
from contracts.summaries.federated import ServerAppSummary
from federated.clients import prepare
from federated.protocol.messages import PHASES
from tests.federated import small_world

ROUNDS = 2


def prepared(tmp_path, clients):
    config = small_world.config(clients=clients, neighbours=4, timeout=300.0, settings=("cpp2", "fedlaavg"))
    prepare.prepare(config, small_world.write(tmp_path / "out"), tmp_path / "federated")
    return tmp_path / "federated"


def settings(folder, nodes, setting="cpp2"):
    return f'folder="{folder}" setting="{setting}" rounds={ROUNDS} nodes={nodes}'


@pytest.mark.slow
def test_flwr_run_completes_rounds_in_the_simulation_engine(tmp_path):
    folder, home, port = prepared(tmp_path, 4), tmp_path / "home", free_port()
    home.mkdir()
    name_superlink(home, port, "insecure = true")
    with process(home, "superlink", "flower-superlink", "--insecure", "--simulation", "--port", str(port)):
        wait_for_port(port, home / "superlink.log")
        for setting in ("cpp2", "fedlaavg"):
            flwr(home, "run", str(ROOT), NAME, "-c", settings(folder, 4, setting), "--federation-config",
                 "num-supernodes=4")
            wait_for_file(folder / "runs" / f"{setting}-flower" / summary.FILE, 900, home)
    for setting in ("cpp2", "fedlaavg"):
        found = summary.required(folder / "runs" / f"{setting}-flower", ServerAppSummary, "flwr run")
        assert found.rounds == ROUNDS


LIES = """
import os
if os.environ.get("LIE_IN"):
    from flwr.clientapp import ClientApp

    honest, phases = ClientApp.__call__, os.environ["LIE_IN"].split(",")

    def lying(self, message, context):
        from federated.flower.array_records import ARRAYS, files_in, from_records, records_of
        from federated.protocol.messages import parted_phases

        reply = honest(self, message, context)
        own = message.metadata.message_type.split(".")[-1]
        liar = context.node_config["partition-id"] == int(os.environ["LIAR"])
        if not liar or own not in phases or not reply.has_content():
            return reply
        files = files_in(reply.content)
        for phase, part in parted_phases(own, from_records(message.content)).items():
            names = [name for name in files if (name.partition(" ")[0] if " " in name else own) == phase]
            if names and phase == phases[int(part["round"]) // 5 % len(phases)]:
                last = files[names[-1]]
                files[names[-1]] = last[:-1] + bytes([last[-1] ^ 255])
                with open(os.environ["LIED"], "a") as said:
                    said.write(phase + "\\n")
        reply.content[ARRAYS] = records_of(files)[ARRAYS]
        return reply

    ClientApp.__call__ = lying
"""
NODES, KILLED, LIAR = 5, 0, 1
LIE_IN = ("train", "open_update", "keys", "shares", "union", "agree_union", "open_union", "choose", "agree_update")
"""By the round's number modulo their count: the last round's is `train`, after which nobody asks it any more."""
GUIDE = ROOT / "docs" / "how-to" / "federated_deployment.md"


def documented(folder, nodes, rounds):
    """The commands of the guide that deploy, with this folder, setting cpp5, other counts and ports that are free."""
    block, = (part.split("```")[0] for part in GUIDE.read_text().split("```bash\n")[1:])
    others = {"/ABSOLUTE/CHECKOUT": str(ROOT), "/ABSOLUTE/federated": str(folder), "9093": str(free_port()),
              "for n in 0 1 2;": f"for n in {' '.join(map(str, range(nodes)))};",
              "--port 909$((n + 4))": f"--port $(echo {' '.join(str(free_port()) for _ in range(nodes))} "
                                      "| cut -d' ' -f$((n + 1)))",
              'setting="cpp2" rounds=10 nodes=3': f'setting="cpp5" rounds={rounds} nodes={nodes}'}
    for printed, here in others.items():
        assert printed in block
        block = block.replace(printed, here)
    return block


def kill(leader, words):
    """Ends the process of a session whose command line has these words, and all that it started."""
    lines = subprocess.run(["ps", "-eww", "-o", "pid=,ppid=,sid=,args="], capture_output=True, text=True, check=True,
                           env=os.environ | {"COLUMNS": ""}).stdout
    known = [(int(pid), int(parent), args) for pid, parent, sid, args in
             (line.split(None, 3) for line in lines.splitlines()) if int(sid) == leader]
    doomed = {pid for pid, _, args in known if words in args}
    assert doomed, known
    while more := {pid for pid, parent, _ in known if parent in doomed} - doomed:
        doomed |= more
    for pid in doomed:
        with contextlib.suppress(ProcessLookupError):  # it has ended since, as its parent was killed
            os.kill(pid, signal.SIGKILL)


@pytest.mark.slow
def test_a_deployment_by_the_documented_commands_with_a_dead_node_and_a_lying_one_is_served(tmp_path):
    """Five authenticated SuperNodes over TLS; one is killed after the first round, one lies in another phase each
    round, until it has lied in all."""
    assert sorted(LIE_IN) == sorted(PHASES)
    text = small_world.TEXT.replace(
        'settings = ["cpp2"]\nserved = "cpp2"\nrounds = 3\nclients = 8',
        f'settings = ["cpp5"]\nserved = "cpp5"\nrounds = {len(LIE_IN)}\nclients = {NODES}\n'
        f"population = {NODES}\ntimeout = 60.0",
    ).replace("evaluate_every = 2", f"evaluate_every = {len(LIE_IN)}")
    (tmp_path / "small.toml").write_text(text)
    out, home = small_world.write(tmp_path / "out"), tmp_path / "home"
    folder, lies, lied = out.out / "federated", tmp_path / "lies", tmp_path / "lied"
    prepare.prepare(parse(text), out, folder)
    lies.mkdir()
    home.mkdir()
    (lies / "sitecustomize.py").write_text(LIES)
    (home / "deploy.sh").write_text(documented(folder, NODES, len(LIE_IN)))
    lying = {"PYTHONPATH": f"{lies}{os.pathsep}{ROOT}", "LIE_IN": ",".join(LIE_IN), "LIAR": str(LIAR),
             "LIED": str(lied)}
    run = folder / "runs" / "cpp5-flower"
    with process(home, "commands", "/bin/bash", "-e", "deploy.sh", more=lying) as commands:
        wait_for_file(run / "model.safetensors", 900, home)
        kill(commands.pid, f"partition-id={KILLED}")
        wait_for_file(run / summary.FILE, 1500, home)
    assert set(lied.read_text().split()) == set(PHASES)
    found = summary.required(run, ServerAppSummary, "flwr run")
    assert found.rounds == len(LIE_IN)
    assert found.history[0].clients == NODES
    assert {entry.clients for entry in found.history[1:]} <= {NODES - 1, NODES - 2}
    assert found.history[LIE_IN.index("keys") - 1].clients == NODES - 2
    assert found.history[-1].abandoned  # what was opened with its words is no sum: it is found and left out
    assert found.history[-1].clients == NODES - 2
    assert found.auc_validation is not None
    assert found.predicted_over_observed is not None
    assert 1 / 3 < found.predicted_over_observed < 3
    sluice(home, "federate", str(tmp_path / "small.toml"), "--out", str(out.out), "--deployed", "cpp5")
    port = free_port()
    with process(home, "server", "sluice", "serve", str(out.bundle), "--port", str(port)):
        wait_for_port(port, home / "server.log", 120)
        said = sluice(home, "rank", "--user", "nobody", "--target", f"127.0.0.1:{port}", "--limit", "5", "--context",
                      f"city={small_world.key('city', 3)}", "--recent", small_world.key("item", 7), "--timeout", "10",
                      "--json")
    assert len(json.loads(said.splitlines()[-1])["items"]) == 5


def sluice(home, *arguments):
    """What the command prints."""
    done = subprocess.run([sys.executable, "-m", "sluice.cli", *arguments], env=environment(home), text=True,
                          capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
