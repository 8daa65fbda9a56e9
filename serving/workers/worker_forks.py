"""Workers as forks of a process that has imported what they import.

    python -m serving.workers.worker_forks SOCKET     forks a worker for every WorkerSettings that comes, until its end

A worker's imports take seconds of a core and a hundred megabytes, beside those that serve where a bundle is changed.
Here they are done once; forks share their memory. Nothing but imports is done before a fork, and no thread of ours or
of a library runs then, but for that of Arrow's allocator, which takes care of forks itself. Where none can be had (no
pidfd, a GPU, whose libraries do not live through a fork, or this process has died and is not back yet) a worker is
started as a process of its own (serving/workers/worker_process.py).
"""

from __future__ import annotations

import contextlib
import gc
import json
import logging
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
import weakref
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from queue import Empty, SimpleQueue

from contracts.behind_others import behind_others
from serving.workers.worker_messages import WorkerSettings

IMPORTED = ("serving.server.server", "serving.workers.worker", "pyarrow.dataset")  # Arrow's last imports pandas
HARMLESS = "jemalloc_bg_thd"
MESSAGE = 1 << 16  # bytes of a worker's settings at most
ENDING_SECONDS = 2.0  # of the thread that has imported
COMING_SECONDS, ANSWER_SECONDS, AGAIN_SECONDS = 60.0, 5.0, 30.0
FORKED, NO_FORK = 0, -1
UNKNOWN_END = 255  # of one whose forking process could not tell any more
GPU = Path("/dev/nvidiactl")
log = logging.getLogger("sluice.serving")


class ForkedWorker:
    """As much of a `subprocess.Popen` as a supervisor needs; by a pidfd, which no later process of the same number is
    taken for."""

    def __init__(self, pid: int, ends: dict[int, int], orders: int, reports: int) -> None:
        self._fd, self.pid, self._ends = os.pidfd_open(pid), pid, ends
        weakref.finalize(self, os.close, self._fd)  # whoever looks at it keeps it open
        self.stdin, self.stdout = os.fdopen(os.dup(orders), "w"), os.fdopen(os.dup(reports))
        self.returncode: int | None = None

    def poll(self) -> int | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Raises TimeoutExpired."""
        if self.returncode is None:
            if not select.select([self._fd], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(f"worker {self.pid}", timeout or 0.0)
            end = time.monotonic() + 1.0
            while self.pid not in self._ends and time.monotonic() < end:
                time.sleep(0.001)
            self.returncode = self._ends.pop(self.pid, UNKNOWN_END)
        return self.returncode

    def terminate(self) -> None:
        self._send(signal.SIGTERM)

    def kill(self) -> None:
        self._send(signal.SIGKILL)

    def _send(self, what: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._fd, what)


class WorkerForks:
    """Of one supervisor, whose thread alone asks; `tend` from time to time."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._line: socket.socket | None = None
        self._listener: threading.Thread | None = None
        self._began, self._ready = -AGAIN_SECONDS, False
        self._pids, self._ends = SimpleQueue[int](), dict[int, int]()

    def __enter__(self) -> WorkerForks:
        self.tend()
        return self

    def __exit__(self, *error: object) -> None:
        """No further forks; those that serve are left alone."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        if self._listener is not None:
            self._listener.join()

    @property
    def coming(self) -> bool:
        """Forks can be had soon: waiting for them takes no longer than to import what they have."""
        alive = self._process is not None and self._process.poll() is None
        return alive and not self._ready and time.monotonic() < self._began + COMING_SECONDS

    def tend(self) -> None:
        """Starts the process that forks, where it does not live; nothing where none can be had."""
        dead = self._process is None or self._process.poll() is not None
        if not dead or time.monotonic() < self._began + AGAIN_SECONDS or not hasattr(os, "pidfd_open") or GPU.exists():
            return
        self._began, self._ready, self._pids = time.monotonic(), False, SimpleQueue()
        try:
            self._start()
        except (OSError, RuntimeError) as error:
            log.warning("workers begin as processes of their own: %s", error)

    def begin(self, settings: WorkerSettings) -> ForkedWorker | None:
        """None where no fork can be had now. Raises OSError where there are no pipes to be had."""
        asked = settings.model_dump_json().encode()
        if not self._ready or self._line is None or len(asked) > MESSAGE:
            return None
        with ExitStack() as until_forked:
            (taken, orders), (reports, given) = _pipe(until_forked), _pipe(until_forked)
            try:
                socket.send_fds(self._line, [asked], [taken, given])
                if pid := self._pids.get(timeout=ANSWER_SECONDS):
                    return ForkedWorker(pid, self._ends, orders, reports)
            except Empty:  # one that is forked after all finds nobody at its pipes, and ends
                assert self._process is not None
                self._process.kill()
            except OSError:
                pass
        log.warning("no worker could be forked, and one begins as a process of its own")
        return None

    def _start(self) -> None:
        """Raises OSError, RuntimeError."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs, ExitStack() as until_started:
            until_started.enter_context(ours)
            listener = threading.Thread(target=self._listen, args=(ours, self._pids), name="forks", daemon=True)
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__, str(theirs.fileno())], stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()], env={**os.environ, "OMP_NUM_THREADS": "1"}, start_new_session=True)
            listener.start()
            until_started.pop_all()
        self._line, self._listener = ours, listener

    def _listen(self, line: socket.socket, pids: SimpleQueue[int]) -> None:
        with line, contextlib.suppress(OSError):
            while message := line.recv(MESSAGE):
                told = json.loads(message)
                if "began" in told:
                    pids.put(told["began"])
                elif "ended" in told:
                    self._ends[told["ended"]] = told["code"]
                else:
                    self._ready = True
        pids.put(0)
        if pids is self._pids:
            self._ready = False


def _pipe(until: ExitStack) -> tuple[int, int]:
    """Both ends, which are closed with `until`."""
    ends = os.pipe()
    for end in ends:
        until.callback(os.close, end)
    return ends


def forks_of(line: socket.socket) -> int:
    """Forks until the other side ends; in a fork the worker's exit code."""
    behind_others(lambda: [import_module(name) for name in IMPORTED])
    if others := _other_threads():
        print(f"workers begin as processes of their own: {sorted(others)} run here", file=sys.stderr)
        return 1
    gc.collect()
    gc.freeze()
    woken, wakes = os.pipe()
    for end in (woken, wakes):
        os.set_blocking(end, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wakes)
    _say(line, ready=1)
    while True:
        readable = select.select([line.fileno(), woken], [], [])[0]
        if woken in readable:
            os.read(woken, MESSAGE)
            _tell_ends(line)
        if line.fileno() in readable:
            settings, pipes, _, _ = socket.recv_fds(line, MESSAGE, 2)
            if not settings:
                return 0
            pid = _fork()
            if pid == FORKED:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                for end in (woken, wakes):
                    os.close(end)
                line.close()
                return _worker(settings.decode(), pipes)
            for pipe in pipes:
                os.close(pipe)
            _say(line, began=max(pid, 0))


def _fork() -> int:
    """As os.fork; NO_FORK where the system gives none."""
    try:
        return os.fork()
    except OSError as error:
        print(f"no worker could be forked: {error.strerror}", file=sys.stderr)
        return NO_FORK


def _say(line: socket.socket, **told: int) -> None:
    with contextlib.suppress(OSError):  # nobody listens any more, and the next look at the line ends this process
        line.send(json.dumps(told).encode())


def _tell_ends(line: socket.socket) -> None:
    with contextlib.suppress(ChildProcessError):
        while (found := os.waitpid(-1, os.WNOHANG))[0]:
            _say(line, ended=found[0], code=os.waitstatus_to_exitcode(found[1]))


def _worker(settings: str, pipes: list[int]) -> int:
    """Serves until it is stopped, with the pipes as its standard input and output."""
    os.setsid()
    for number, pipe in enumerate(pipes):
        os.dup2(pipe, number)
        os.close(pipe)
    return int(import_module("serving.workers.worker").main(settings))


def _other_threads() -> set[str]:
    """Names of those that a fork would leave in the middle of what they do; one that ends just now is waited for."""
    own, end = str(threading.get_native_id()), time.monotonic() + ENDING_SECONDS
    while True:
        names = set()
        for task in Path("/proc/self/task").iterdir():
            with contextlib.suppress(OSError):
                names.add((task / "comm").read_text().strip() if task.name != own else HARMLESS)
        if names == {HARMLESS} or time.monotonic() > end:
            return names - {HARMLESS}
        time.sleep(0.01)


if __name__ == "__main__":
    sys.exit(forks_of(socket.socket(fileno=int(sys.argv[1]))))
