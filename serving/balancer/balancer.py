"""HAProxy as a process beside the supervisor: begun, kept alive, told times, asked what it has refused, ended."""

from __future__ import annotations

import contextlib
import csv
import io
import logging
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

from contracts.errors import ConfigError, SluiceError
from contracts.locks.own_folder import own_folder
from serving.balancer.certificates import Certificates
from serving.balancer.configuration import DEADLINE, PACE, REFUSED, SOCKET, TIMES, BalancerPlan, configuration
from serving.balancer.refusals import refusals_of_process

PROGRAM, OLDEST = "haproxy", (2, 4)
FOLDER, TOLD = "sluice-balancer.", "haproxy.cfg"
START_SECONDS, ANSWER_SECONDS, STOP_SECONDS, STEP = 5.0, 1.0, 12.0, 0.02
PAUSE_SECONDS = 1.0  # before another one is begun in place of one that has died
LOOK_SECONDS = 5.0  # between two looks at refusals and certificates
LEAVE = signal.SIGUSR1  # to answer what is under way and end, also where the supervisor is killed
CHANGED = 0.05  # of the pace, to be told
FEW_CONNECTIONS = 1000  # from callers
NAME, SERVICE, REQUESTS = "# pxname", "svname", "req_tot"  # columns of HAProxy's figures
log = logging.getLogger("sluice.serving")


def program() -> str:
    """Where HAProxy is. Raises ConfigError where it is not, or is too old."""
    found = shutil.which(PROGRAM, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
    if found is None:
        raise _lacking("is not there")
    version = re.search(r"version (\d+)\.(\d+)", subprocess.run([found, "-v"], capture_output=True, text=True).stdout)
    if version is None:
        raise _lacking(f"{found} is not, by its -v")
    if (int(version[1]), int(version[2])) < OLDEST:
        raise _lacking(f"is {version[0]}")
    return found


def _lacking(what: str) -> ConfigError:
    return ConfigError(f"--balancer needs HAProxy {'.'.join(map(str, OLDEST))} or newer, which {what}; install it "
                       "(Debian, Ubuntu: apt-get install haproxy), or serve without")


class Balancer:
    """Listens once it is made, until it is closed. Raises SluiceError, with HAProxy's words, where it cannot, and
    ConfigError where its certificates do not fit."""

    def __init__(self, plan: BalancerPlan, pace: float, deadline: float) -> None:
        self._plan, self._program = plan, program()
        self._pace, self._deadline = pace, deadline
        self._certificates = Certificates(plan.tls) if plan.tls else None
        self._refused, self._refusals, self._begin_next, self._look_next = 0, refusals_of_process(), 0.0, 0.0
        self._open = contextlib.ExitStack()
        self._folder = self._open.enter_context(own_folder(FOLDER))
        self._process = self._begin()
        try:
            self._wait()
        except SluiceError:
            self.close()
            raise

    @property
    def pid(self) -> int:
        return self._process.pid

    def tend(self, pace: float, deadline: float) -> None:
        """Begins another one where it has died; `pace` is how many seconds one more call makes others wait, `deadline`
        how many a call without one may take; 0 where nobody knows."""
        now = time.monotonic()
        if self._process.poll() is not None:
            if now >= self._begin_next:
                log.error("the balancer has died with %d (%s); another one is begun", self._process.returncode,
                          self._words)
                self._begin_next = now + PAUSE_SECONDS
                self._pace, self._deadline = pace or self._pace, deadline or self._deadline
                self._process, self._refused = self._begin(), 0
        elif abs(pace - self._pace) > CHANGED * self._pace and pace > 0:
            with contextlib.suppress(OSError):  # it has just died, or is about to: it is told with the next look
                self._ask(f"set map {TIMES} {PACE} {microseconds(pace)}")
                self._pace = pace
        elif deadline not in (self._deadline, 0.0):
            with contextlib.suppress(OSError):
                self._ask(f"set map {TIMES} {DEADLINE} {microseconds(deadline)}")
                self._deadline = deadline
        elif now >= self._look_next:
            self._look_next = now + LOOK_SECONDS
            self._look(now)

    def leave(self) -> None:
        """Takes no new connections; what is under way goes on."""
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(LEAVE)

    def close(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._open.close()

    @property
    def _words(self) -> str:
        """Its first alarm, else the last that it has said."""
        try:
            lines = (self._folder / "log").read_text(errors="replace").splitlines()
        except OSError:  # somebody has cleaned up, as some systems do with what lies there for days
            lines = []
        said = [line for line in lines if "[ALERT]" in line]
        if said:
            return said[0].partition("config : ")[2] or said[0]
        return lines[-1] if lines else "it says nothing"

    def _begin(self) -> subprocess.Popen[bytes]:
        self._folder.mkdir(mode=0o700, exist_ok=True)
        (self._folder / TIMES).write_text(
            f"{PACE} {microseconds(self._pace)}\n{DEADLINE} {microseconds(self._deadline)}\n")
        (self._folder / TOLD).write_text(configuration(self._plan))
        if self._certificates is not None:
            self._certificates.link(self._folder)
        with (self._folder / "log").open("w") as sink:
            return subprocess.Popen(
                [sys.executable, "-m", "serving.balancer.ends_with_parent", str(os.getpid()), str(int(LEAVE)),
                 self._program, "-db", "-C", str(self._folder), "-f", TOLD], stdout=sink, stderr=sink,
                start_new_session=True)

    def _wait(self) -> None:
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end and self._process.poll() is None:
            with contextlib.suppress(OSError):
                self._check_room(self._ask("show info"))
                return
            time.sleep(STEP)
        raise SluiceError(f"the balancer does not listen on {self._plan.host}:{self._plan.port}: {self._words}")

    def _check_room(self, told: str) -> None:
        """Says where callers will find none."""
        found = re.search(r"^Maxconn: (\d+)$", told, re.MULTILINE)
        if found and int(found[1]) < FEW_CONNECTIONS:
            log.warning("the balancer takes %s connections at once, as the limit of open files has it (ulimit -n); "
                        "raise it where more callers come", found[1])

    def _look(self, now: float) -> None:
        """At what it has refused since it began, and whether its certificates have been renewed."""
        with contextlib.suppress(OSError):
            if self._certificates is not None:
                self._certificates.renew(self._ask)
            for row in csv.DictReader(io.StringIO(self._ask("show stat"))):
                if row[NAME] == REFUSED and row[SERVICE] == "BACKEND":
                    self._refusals.more(int(row[REQUESTS]) - self._refused, now)
                    self._refused = int(row[REQUESTS])

    def _ask(self, words: str) -> str:
        """Raises OSError where nobody answers."""
        with socket.socket(socket.AF_UNIX) as asked:
            asked.settimeout(ANSWER_SECONDS)
            asked.connect(f"/proc/{self._process.pid}/cwd/{SOCKET}")
            asked.sendall(words.encode() + b"\n")
            answer = b"".join(iter(lambda: asked.recv(65_536), b""))
        return answer.decode(errors="replace")


def microseconds(seconds: float) -> int:
    return max(round(1e6 * seconds), 1)
