"""Flower's own processes on loopback: a SuperLink, SuperNodes, and the commands that speak with them, as
docs/how-to/federated_deployment.md has them."""

from __future__ import annotations

import datetime
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

ROOT = Path(__file__).resolve().parents[2]
NAME = "test"


def free_port() -> int:
    """Of this machine, at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def environment(home: Path) -> dict[str, str]:
    """Nothing leaves this machine, nothing is installed, every file lies below `home`; but the kernels compiled
    for this machine (models/compiled/kernels.py) are its own: each node would compile them again."""
    return {"XDG_CACHE_HOME": str(Path.home() / ".cache")} | os.environ | {
        "FLWR_HOME": str(home), "FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION": "1", "FLWR_TELEMETRY_ENABLED": "0",
        "RAY_USAGE_STATS_ENABLED": "0", "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "HOME": str(home),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }


@contextmanager
def process(
    home: Path, name: str, *arguments: str, more: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """One of Flower's commands until the block ends; it and what it started are stopped. Its output is in NAME.log.
    `more`: beside the environment of all."""
    with (home / f"{name}.log").open("wb") as log:
        made = subprocess.Popen(
            [str(Path(sys.executable).parent / arguments[0]), *arguments[1:]], stdout=log, stderr=subprocess.STDOUT,
            env=environment(home) | dict(more or {}), start_new_session=True, cwd=home,
        )
        try:
            yield made
        finally:
            _stop(made)


def _stop(made: subprocess.Popen[bytes]) -> None:
    for kind in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(made.pid, kind)
            made.wait(10)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            continue


def flwr(home: Path, *arguments: str, seconds: float = 240) -> str:
    """Output of a `flwr` command. Raises RuntimeError with it when the command fails."""
    return _output(home, [str(Path(sys.executable).parent / "flwr"), *arguments], seconds)


def _output(home: Path, command: list[str], seconds: float) -> str:
    done = subprocess.run(command, env=environment(home), cwd=ROOT, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=seconds, check=False)
    if done.returncode:
        said = f"{Path(command[0]).name} {' '.join(command[1:3])} ended with {done.returncode}"
        raise RuntimeError(f"{said}:\n{done.stdout}")
    return done.stdout


def register(home: Path, keys: list[Path]) -> None:
    """`flwr supernode register KEY` for each of the keys, in one process: most of a `flwr` command is its start."""
    lines = f"from flwr.cli.app import app\nfor key in {[str(key) for key in keys]}:\n" \
            f"    app(['supernode', 'register', key, {NAME!r}], standalone_mode=False)\n"
    _output(home, [sys.executable, "-c", lines], 240)


def name_superlink(home: Path, port: int, connection: str) -> None:
    """NAME is where `flwr` finds it."""
    (home / "config.toml").write_text(
        f'[superlink]\ndefault = "{NAME}"\n\n[superlink.{NAME}]\naddress = "127.0.0.1:{port}"\n{connection}\n'
    )


def wait_for_port(port: int, log: Path, seconds: float = 60) -> None:
    """Raises TimeoutError with the log of what should listen."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)
    raise TimeoutError(f"nothing listens on {port}: {log.read_text()}")


def wait_for_file(path: Path, seconds: float, home: Path) -> None:
    """Raises RuntimeError with the run's own log when the last run has ended without the file, TimeoutError with the
    ends of all logs in `home` when it still runs."""
    end = time.monotonic() + seconds
    while not path.exists():
        ended = _ended_run(home)
        if ended and not path.exists():
            raise RuntimeError(f"the run ended without {path}:\n{flwr(home, 'log', ended, NAME, '--show')[-6000:]}")
        if time.monotonic() > end:
            texts = "\n".join(f"--- {log.name}\n{log.read_text()[-3000:]}" for log in sorted(home.glob("*.log")))
            raise TimeoutError(f"{path} was not written in {seconds} s\n{texts}")
        time.sleep(0.5)


def _ended_run(home: Path) -> str:
    """The last run's id, when the SuperLink has none at work; else nothing."""
    log = home / "superlink.log"
    text = log.read_text() if log.exists() else ""
    made, ended = (re.findall(words, text) for words in (r"Created run (\d+)", r"Finished task \d+ of run (\d+)"))
    return made[-1] if made and set(made) == set(ended) else ""


def write_certificate(folder: Path) -> None:
    """A certificate authority (ca.pem) and a certificate of 127.0.0.1 by it (server.pem, server.key)."""
    now = datetime.datetime.now(datetime.UTC)
    ca_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    ca = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "Sluice test authority")])

    def builder(subject: x509.Name, public: ec.EllipticCurvePublicKey, authority: bool) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder().subject_name(subject).issuer_name(ca).public_key(public)
            .serial_number(x509.random_serial_number()).not_valid_before(now - datetime.timedelta(hours=1))
            .not_valid_after(now + datetime.timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
        )

    server = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    names = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1")), x509.DNSName("localhost")])
    authority = builder(ca, ca_key.public_key(), True).sign(ca_key, hashes.SHA256())
    signed = builder(server, key.public_key(), False).add_extension(names, critical=False).sign(ca_key, hashes.SHA256())
    (folder / "ca.pem").write_bytes(authority.public_bytes(Encoding.PEM))
    (folder / "server.pem").write_bytes(signed.public_bytes(Encoding.PEM))
    (folder / "server.key").write_bytes(
        key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()))


def write_node_key(folder: Path, name: str) -> tuple[Path, Path]:
    """A SuperNode's key pair, as OpenSSH writes them."""
    key = ec.generate_private_key(ec.SECP384R1())
    private, public = folder / name, folder / f"{name}.pub"
    private.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()))
    public.write_bytes(key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH))
    return private, public


@contextmanager
def deployment(
    home: Path, nodes: int, more: Mapping[int, Mapping[str, str]] | None = None
) -> Iterator[list[subprocess.Popen[bytes]]]:
    """A SuperLink with TLS and node authentication and so many SuperNodes, node n for client n; all are stopped when
    the block ends. `more`: a node's environment beside that of all."""
    port = free_port()
    home.mkdir(parents=True)
    write_certificate(home)
    name_superlink(home, port, f'root-certificates = "{home / "ca.pem"}"')
    tls = [f"--ssl-{kind}file={home / name}" for kind, name in
           (("cert", "server.pem"), ("key", "server.key"), ("ca-cert", "ca.pem"))]
    with ExitStack() as stack:
        stack.enter_context(process(
            home, "superlink", "flower-superlink", *tls, "--enable-supernode-auth", "--port", str(port)))
        wait_for_port(port, home / "superlink.log")
        keys = [write_node_key(home, f"node{number}") for number in range(nodes)]
        register(home, [public for _, public in keys])
        yield [stack.enter_context(process(
            home, f"supernode{number}", "sluice", "supernode", *tls, f"--root-certificates={home / 'ca.pem'}",
            f"--superlink=127.0.0.1:{port}", f"--auth-supernode-private-key={private}", f"--port={free_port()}",
            f"--node-config=partition-id={number}", more=(more or {}).get(number),
        )) for number, (private, _) in enumerate(keys)]
