"""What writers of the log have left that ended without a word: their journals are published, what they lost is counted.

Whoever holds a dead writer's lock does so: the next server that starts, or a worker beside it. What cannot be published
now (no room for its file, a damaged journal) is said once and tried again at the next look; whatever it is, it keeps
nobody from starting, from what the other dead have left, or from rows of its own.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from serving.response_log import journal as journals
from serving.response_log import ledger as ledgers
from serving.response_log.ledger import Ledger, Served

ABANDONED_SECONDS = 60.0
log = logging.getLogger("sluice.serving")


class DeadWriters:
    """Of the log in `folder`. `lost` is told of calls that are in no file, and of the bundle that had them."""

    def __init__(self, folder: Path, lost: Callable[[int, Served], None]) -> None:
        self._folder, self._lost, self._said = folder, lost, set[Path]()

    def adopt(self) -> None:
        """Publishes what they have left, and counts what they have lost."""
        for page in list(ledgers.pages(self._folder)):
            self._done(page, partial(self._adopt_page, page))

    def adopt_all(self) -> None:
        """With the journals that have no page, of another machine or from before this one started; and removes the
        drafts and pages of which nothing comes."""
        _remove_drafts(self._folder)
        for page in list(ledgers.abandoned()):
            _remove_without_folder(page)
        self.adopt()
        left = list(self._folder.glob(f"day=*/.answers-*{journals.SUFFIX}"))
        known = {page.name.rsplit("-", 1)[1] for page in ledgers.pages(self._folder)}
        for path in left:
            self._done(path, partial(_publish_unless_known, path, known))

    def _adopt_page(self, page: Path) -> None:
        with journals.claimed(page) as mine:
            if mine and page.stat().st_size < ledgers.SIZE:  # its process has ended before it could take a call
                page.unlink()
            elif mine:
                dead = Ledger(page)
                try:
                    dead.close(remove=self._count(dead))
                except BaseException:
                    dead.close(remove=False)
                    raise

    def _count(self, dead: Ledger) -> bool:
        """Whether all that it has left is published, and the rest counted."""
        left = sorted(  # as they were begun: the page takes one of before the last that it was told of for told
            self._folder.glob(f"day=*/.answers-*-{dead.writer}-*{journals.SUFFIX}"), key=journals.writer_and_number)
        if not all(self._done(path, partial(journals.settle, path, dead)) for path in left):
            return False
        missing = dead.taken - dead.published
        if missing > 0:
            log.error("a process that served %s has ended without its word: %d of its %d calls are in no file",
                      dead.served.version, missing, dead.taken)
            self._lost(missing, dead.served)
        return True

    def _done(self, left: Path, work: Callable[[], object]) -> bool:
        """Whether the work on what is left could be done."""
        try:
            work()
        except Exception as error:
            if left not in self._said:
                log.error("%s, left by a process that has ended, is kept until it can be settled: %s", left,
                          str(error) or type(error).__name__)
            self._said.add(left)
            return False
        return True


def _publish_unless_known(path: Path, known: set[str]) -> None:
    with journals.claimed(path) as mine:
        if mine and journals.writer_and_number(path)[0] not in known:
            journals.settle(path, None)


def _remove_drafts(folder: Path) -> None:
    """Of writers that were killed while they published."""
    for path in list(folder.glob("day=*/.answers-*.parquet")):
        with contextlib.suppress(OSError):  # another server was faster, or it is another user's
            if time.time() - path.stat().st_mtime > ABANDONED_SECONDS:
                path.unlink()


def _remove_without_folder(page: Path) -> None:
    """A dead writer's page whose log is gone with its folder: nobody will ever ask for what it has lost. One
    that cannot be read is another log's to say."""
    with contextlib.suppress(OSError, TypeError, ValueError), journals.claimed(page) as mine:
        if mine and (page.stat().st_size < ledgers.SIZE or _without_folder(Ledger(page))):
            page.unlink()


def _without_folder(dead: Ledger) -> bool:
    try:
        return dead.folder is not None and not dead.folder.exists()
    finally:
        dead.close(remove=False)
