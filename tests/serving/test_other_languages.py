"""The clients of docs/reference/other_languages.md: compiled as they stand, and asking a real server.

They need compilers and gRPC's libraries of their languages, of Debian's packages below SLUICE_TOOLCHAIN (/ unless set);
`-rs` shows what was missing. Nothing of the platform needs them; `make languages` installs them for the tests.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from serving.bundle.loaded_bundle import LoadedBundle
from serving.server.servicer import RankingServicer
from serving.stages.funnel import Funnel
from tests.docs_blocks import blocks
from tests.serving.in_process_server import InProcessServer

PAGE = "reference/other_languages.md"
PROTO = Path(__file__).parents[2] / "serving" / "proto"
ROOT = Path(os.environ.get("SLUICE_TOOLCHAIN", "/"))
BIN, LIBRARIES, GO = ROOT / "usr/bin", ROOT / "usr/share/java", ROOT / "usr/share/gocode"
PATHS = {**os.environ, "LD_LIBRARY_PATH": str(ROOT / "usr/lib/x86_64-linux-gnu"), "PATH": f"{BIN}:{os.environ['PATH']}"}
pytestmark = pytest.mark.slow


def needs(*paths: Path) -> pytest.MarkDecorator:
    missing = [str(path) for path in paths if not path.exists()]
    return pytest.mark.skipif(bool(missing), reason=f"not installed: {', '.join(missing)}")


@pytest.fixture(scope="module")
def server(loaded: LoadedBundle) -> Iterator[InProcessServer]:
    servicer = RankingServicer(Funnel(loaded), loaded.manifest, loaded.settings.serve)
    with InProcessServer(servicer) as server:
        yield server
    servicer.close()


def run(words: list[str | Path], folder: Path, **variables: str | Path) -> str:
    done = subprocess.run(words, cwd=folder, env={**PATHS, **{name: str(held) for name, held in variables.items()}},
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def protoc(folder: Path, *words: str) -> None:
    run([BIN / "protoc", f"-I{PROTO}", f"-I{ROOT / 'usr/include'}", *words, "sluice.proto"], folder)


def client(language: str, server: InProcessServer) -> str:
    """The page's, which asks this server and has the patience of a test."""
    [code] = blocks(PAGE, language)
    changed = code.replace("127.0.0.1:50051", server.target).replace("500", "60000")
    assert changed.count(server.target) == 1
    return changed


def answers(told: str, loaded: LoadedBundle) -> None:
    items = [line.split() for line in told.splitlines()]
    assert len({item for item, _ in items}) == 3
    assert all(loaded.items.row(item) is not None and 0 < float(probability) < 1 for item, probability in items)


@needs(BIN / "go", BIN / "protoc", BIN / "protoc-gen-go", BIN / "protoc-gen-go-grpc", GO / "src/google.golang.org/grpc",
       GO / "src/google.golang.org/protobuf")
def test_the_client_in_go_asks(server: InProcessServer, loaded: LoadedBundle, tmp_path: Path) -> None:
    source = tmp_path / "src"
    (source / "example").mkdir(parents=True)
    (source / "example" / "main.go").write_text(client("go", server))
    protoc(source, "--go_out=.", "--go-grpc_out=.")
    run(["go", "build", "-o", tmp_path / "ask", "."], source / "example", GO111MODULE="off", GOPATH=f"{tmp_path}:{GO}",
        **({"GOROOT": found} if (found := next(ROOT.glob("usr/lib/go-*"), None)) else {}))
    answers(run([tmp_path / "ask"], tmp_path), loaded)


@needs(BIN / "protoc", BIN / "grpc_java_plugin", LIBRARIES / "grpc-stub.jar", LIBRARIES / "protobuf.jar",
       LIBRARIES / "perfmark-api.jar", LIBRARIES / "netty-all.jar")
def test_the_client_in_java_asks(server: InProcessServer, loaded: LoadedBundle, tmp_path: Path) -> None:
    (tmp_path / "Ask.java").write_text(client("java", server))
    protoc(tmp_path, f"--plugin=protoc-gen-grpc-java={BIN / 'grpc_java_plugin'}", "--java_out=.", "--grpc-java_out=.")
    libraries = f"{LIBRARIES}/*:{tmp_path}"
    run(["javac", "-nowarn", "-cp", libraries, "-sourcepath", ".", "Ask.java"], tmp_path)
    answers(run(["java", "-cp", libraries, "Ask"], tmp_path), loaded)
