"""A process beside the one that goes on, for independent pieces of a run, one after the other.

Small networks gain little from a second thread: two processes of one thread each do more than one of two. From the
first piece on this process keeps half of the threads of torch, BLAS and OpenMP, and the one beside has the other half:
of an odd number both have the smaller half, so that a result does not hang on which of the two has made it. A library
that kept them all would wait in every product for a thread that has no core.
"""

from __future__ import annotations

import os
import pickle
import signal
import threading
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from importlib import import_module
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any, Self, TypeVar, cast

from contracts.errors import SluiceError

T = TypeVar("T")
THREADS = "OMP_NUM_THREADS"


class SideLane:
    """`with SideLane() as lane: piece = lane.submit(function, 1); ...; piece.result()`.

    Functions and arguments are pickled. `piece.cancel()` takes back what has not begun. A piece that raises raises in
    `result`, and in `wait`; SluiceError where the process died. Leaving the block by an error ends the process, else
    what was given is waited for.
    """

    def __init__(self, modules: Sequence[str] = ()) -> None:
        """`modules` are imported at once, before the first piece."""
        self._modules = tuple(modules)

    def __enter__(self) -> Self:
        context = get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._all = _threads()
        self._process = context.Process(
            target=_work, args=(theirs, self._modules, max(self._all // 2, 1)), name="side-lane", daemon=True)
        self._process.start()
        theirs.close()
        self._queue = ThreadPoolExecutor(1, thread_name_prefix="side-lane")
        self._pieces: list[Future[Any]] = []
        self._before = 0
        return self

    def submit(self, function: Callable[..., T], *arguments: Any) -> Future[T]:
        """Does `function(*arguments)` after all pieces before it."""
        if not self._before:
            self._share_threads()
        piece = self._queue.submit(self._done, function, arguments)
        self._pieces.append(piece)
        return piece

    def wait(self) -> None:
        """Until all is done that was not taken back. Raises what the first piece raised that failed."""
        for piece in self._pieces:
            if not piece.cancelled():
                piece.result()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self._process.terminate()
        try:
            self._queue.shutdown(cancel_futures=error is not None)
        except BaseException:  # told to stop while it waits
            self._process.terminate()
            raise
        self._connection.close()
        self._process.join()
        if self._before:
            self._take_threads_back()

    def _share_threads(self) -> None:
        import torch
        from threadpoolctl import threadpool_limits

        half = max(self._all // 2, 1)
        self._before, self._wanted = torch.get_num_threads(), os.environ.get(THREADS)
        self._limits = threadpool_limits(half)
        torch.set_num_threads(half)
        os.environ[THREADS] = str(half)  # of libraries that are loaded later

    def _take_threads_back(self) -> None:
        import torch

        self._limits.restore_original_limits()
        torch.set_num_threads(self._before)
        os.environ.pop(THREADS)
        os.environ.update({} if self._wanted is None else {THREADS: self._wanted})

    def _done(self, function: Callable[..., T], arguments: tuple[Any, ...]) -> T:
        try:
            self._connection.send((function, arguments))
            value, error = self._connection.recv()
        except (EOFError, OSError):
            self._process.join()
            raise SluiceError(f"the process beside this one died with exit code {self._process.exitcode} in "
                              f"{function.__module__}.{function.__name__}; is there memory for both?") from None
        if error is not None:
            raise error
        return cast(T, value)


def _threads() -> int:
    """As many as torch would take: OMP_NUM_THREADS, or the cores that this process may use."""
    wanted = os.environ.get(THREADS, "")
    return int(wanted) if wanted.isdecimal() else _cores()


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _work(connection: Connection, modules: Sequence[str], threads: int) -> None:
    """Answers (function, arguments) with (value, error) until the other side closes; ends with the process that began
    it, however that ended: Ctrl-C, which both are told, is the other's to answer."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ[THREADS] = str(threads)  # read when numpy and torch load, so set before
    threading.Thread(target=_end_with_parent, daemon=True).start()
    for module in modules:
        import_module(module)
    while True:
        try:
            function, arguments = connection.recv()
        except EOFError:
            return
        try:
            answer: tuple[Any, Exception | None] = (function(*arguments), None)
        except Exception as error:
            error.add_note("In the process beside:\n" + traceback.format_exc())
            answer = (None, portable(error))
        connection.send(answer)


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def portable(error: Exception) -> Exception:
    """As it is where pickle brings it back whole, else a SluiceError that says the same."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return SluiceError(f"{type(error).__name__}: {error}")
    return error
