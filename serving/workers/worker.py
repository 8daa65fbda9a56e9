"""One server process under a supervisor: its argument is a `WorkerSettings`, its output `WorkerReport`s, one a line.

    {"ready": VERSION}       it listens; from now on new callers are its own
    {"refused": SENTENCE}    the bundle cannot be served; the process ends

It stops when its standard input closes, so that no worker outlives its supervisor.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading

from serving.workers.worker_messages import WorkerReport, WorkerSettings

LOG_FORMAT = "%(asctime)s %(levelname)s %(process)d %(message)s"


def log_to_stderr() -> None:
    """Our own lines from INFO on, those of libraries from WARNING on."""
    logging.basicConfig(level=logging.WARNING, format=LOG_FORMAT)
    logging.getLogger("sluice").setLevel(logging.INFO)


def report(message: WorkerReport) -> None:
    """To the supervisor."""
    print(message.line, flush=True)


def stop_with_supervisor() -> None:
    """Asks this process to stop once its standard input has closed."""
    while os.read(sys.stdin.fileno(), 1):  # not sys.stdin.read(): its lock would be held when the process ends
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def main(told: WorkerSettings) -> int:
    """Serves until it is stopped. Returns the exit code."""
    os.environ["OMP_NUM_THREADS"] = "1"  # read when torch and FAISS load, so set before them
    log_to_stderr()
    threading.Thread(target=stop_with_supervisor, name="supervisor", daemon=True).start()
    from contracts.errors import SluiceError
    from serving.server.server import ServerSettings, run

    settings = ServerSettings(told.host, told.port, told.answers, told.connection_seconds)
    try:
        run(told.folder, settings, lambda bundle, _: report(WorkerReport(ready=bundle.version)))
    except SluiceError as error:
        report(WorkerReport(refused=str(error)))
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(WorkerSettings.model_validate_json(sys.argv[1])))
