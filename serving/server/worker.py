"""One server process under a supervisor: told by a JSON line of settings, it says what became of it in JSON lines.

    {"ready": VERSION}       it listens; from now on new callers are its own
    {"refused": SENTENCE}    the bundle cannot be served; the process ends

It stops when its standard input closes, so that no worker outlives its supervisor.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import threading
from pathlib import Path

LOG_FORMAT = "%(asctime)s %(levelname)s %(process)d %(message)s"


def log_to_stderr() -> None:
    """Our own lines from INFO on, those of libraries from WARNING on."""
    logging.basicConfig(level=logging.WARNING, format=LOG_FORMAT)
    logging.getLogger("sluice").setLevel(logging.INFO)


def say(**words: str) -> None:
    print(json.dumps(words), flush=True)


def stop_with_supervisor() -> None:
    while os.read(sys.stdin.fileno(), 1):  # not sys.stdin.read(): its lock would be held when the process ends
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def main(folder: str, host: str, port: int, answers: str | None, connection_seconds: float) -> int:
    os.environ["OMP_NUM_THREADS"] = "1"  # read when torch and FAISS load, so set before them
    log_to_stderr()
    threading.Thread(target=stop_with_supervisor, name="supervisor", daemon=True).start()
    from contracts.errors import SluiceError
    from serving.server.server import ServerSettings, run

    settings = ServerSettings(host, port, Path(answers) if answers else None, connection_seconds)
    try:
        run(Path(folder), settings, lambda bundle, _: say(ready=bundle.version))
    except SluiceError as error:
        say(refused=str(error))
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(**json.loads(sys.argv[1])))
