"""Flower's own processes on loopback: a SuperLink, SuperNodes, and the commands that speak with them."""

from __future__ import annotations

import datetime
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

ROOT = Path(__file__).resolve().parents[2]
NAME = "test"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def environment(home: Path) -> dict[str, str]:
    """Nothing leaves this machine, nothing is installed, every file lies below `home`."""
    return os.environ | {
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
    """Output of a `flwr` command. Raises AssertionError with it when the command fails."""
    done = subprocess.run(
        [str(Path(sys.executable).parent / "flwr"), *arguments], env=environment(home), cwd=ROOT, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=seconds, check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def register(home: Path, keys: list[Path]) -> None:
    """`flwr supernode register KEY` for each of the keys, in one process: most of a `flwr` command is its start."""
    lines = f"from flwr.cli.app import app\nfor key in {[str(key) for key in keys]}:\n" \
            f"    app(['supernode', 'register', key, {NAME!r}], standalone_mode=False)\n"
    done = subprocess.run([sys.executable, "-c", lines], env=environment(home), cwd=ROOT, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=240, check=False)
    assert done.returncode == 0, done.stdout


def name_superlink(home: Path, port: int, connection: str) -> None:
    (home / "config.toml").write_text(
        f'[superlink]\ndefault = "{NAME}"\n\n[superlink.{NAME}]\naddress = "127.0.0.1:{port}"\n{connection}\n'
    )


def wait_for_port(port: int, log: Path, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)
    raise AssertionError(f"nothing listens on {port}: {log.read_text()}")


def wait_for_file(path: Path, seconds: float, logs: Path) -> None:
    end = time.monotonic() + seconds
    while not path.exists():
        if time.monotonic() > end:
            texts = "\n".join(f"--- {log.name}\n{log.read_text()[-3000:]}" for log in sorted(logs.glob("*.log")))
            raise AssertionError(f"{path} was not written in {seconds} s\n{texts}")
        time.sleep(0.5)


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
