"""Batches that arrive on a GPU in time: a thread reads and page-locks the next ones while the device works.

    read, decode, shuffle ▶ page-locked memory (a thread, AHEAD batches at most) ▶ asynchronous copy ▶ update

On a CPU reading would take the cores that compute, so batches come as they are read.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import NoReturn, TypeVar

import torch

from models.examples.batches import Batch

AHEAD = 4
LOOK = 0.1  # seconds after which a thread that waits looks whether anybody still wants what it has
Made = TypeVar("Made")
Item = Callable[[], Made]  # returns what was made, or raises what its making raised


def arriving(batches: Iterable[Batch], device: torch.device) -> Iterator[Batch]:
    """The batches in their order, on the device. Raises what reading them raises."""
    if device.type == "cpu":
        yield from batches
        return
    for batch in made_ahead((batch.pinned(device) for batch in batches), AHEAD):
        yield batch.to(device)


def made_ahead(made: Iterator[Made], ahead: int) -> Iterator[Made]:
    """`made` in its order by a thread that is at most `ahead` before who takes them, and ends with them."""
    waiting: queue.Queue[Item[Made] | None] = queue.Queue(ahead)
    unwanted = threading.Event()
    thread = threading.Thread(target=_make, args=(made, waiting, unwanted), name="batches ahead", daemon=True)
    thread.start()
    try:
        while (item := waiting.get()) is not None:
            yield item()
    finally:
        unwanted.set()
        thread.join()


def _make(made: Iterator[Made], waiting: queue.Queue[Item[Made] | None], unwanted: threading.Event) -> None:
    try:
        for each in made:
            if not _put(waiting, lambda each=each: each, unwanted):  # type: ignore[misc]
                return
    except BaseException as error:
        _put(waiting, lambda error=error: _raised(error), unwanted)  # type: ignore[misc]
    _put(waiting, None, unwanted)


def _put(waiting: queue.Queue[Item[Made] | None], item: Item[Made] | None, unwanted: threading.Event) -> bool:
    """False where nobody wants it any more."""
    while not unwanted.is_set():
        try:
            waiting.put(item, timeout=LOOK)
            return True
        except queue.Full:
            continue
    return False


def _raised(error: BaseException) -> NoReturn:
    raise error
