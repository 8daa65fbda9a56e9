"""How a supervisor begins to serve: what its source names, or else what was served last.

    named, fetched and whole                       is served
    the source is silent, or cannot be asked       what was served last; what the source names comes when it answers
    a worker of it dies while it loads             begun again, STARTS times in all
    another lies there before it is fetched        that one
    the alias names nothing, or is gone            what was served last; what it names comes when it names something
    it cannot be loaded, or its parity differs     what was served last

Without a bundle that was served last there is nothing to fall back on, and the start fails.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from contracts.errors import BundleError, ReplacedError
from serving.start.told_to_stop import ToldToStop
from serving.workers.bundle_cache import ServedBundle
from serving.workers.bundle_search import BundleSearch, sentence
from serving.workers.generation import Generation

TICK_SECONDS = 0.05
PATIENCE_SECONDS = 10.0  # with a silent source, or a slow download, where something was served last
STARTS = 3
log = logging.getLogger("sluice.serving")


def first_bundle(search: BundleSearch, last: ServedBundle | None, stop: ToldToStop) -> ServedBundle | None:
    """None when it is told to stop meanwhile. Raises BundleError where there is nothing to serve."""
    search.begin()
    end = time.monotonic() + PATIENCE_SECONDS
    while search.under_way and (last is None or time.monotonic() < end):
        if stop.wait(TICK_SECONDS):
            return None
    if last is not None and search.under_way:
        log.warning("the registry has not answered in %.0f s: %s is served, as before", PATIENCE_SECONDS, last.version)
        return last
    if isinstance(search.error, ReplacedError):
        return first_bundle(search, last, stop)
    if search.error is not None:
        if last is None:
            known = isinstance(search.error, BundleError)
            raise search.error if known else BundleError(sentence(search.error)) from search.error
        log.warning("the registry cannot be asked (%s): %s is served, as before", sentence(search.error), last.version)
        return last
    first = search.take()
    if first is None and last is not None:
        log.warning("the registry names no such bundle (an alias that is gone, or misspelt): %s is served, as "
                    "before", last.version)
        return last
    if first is None:
        raise BundleError("the registry names no such bundle; register and promote one first")
    return first


def first_generation(
    first: ServedBundle, last: ServedBundle | None, begin: Callable[[ServedBundle], Generation],
    refuse: Callable[[str], None], stop: ToldToStop,
) -> Generation | None:
    """One that serves, of `first` or else of the bundle served last; None when it is told to stop meanwhile. Raises
    BundleError where neither can be served."""
    bundles, why = [first] if last is None or last.version == first.version else [first, last], ""
    for bundle in bundles:
        for attempt in range(STARTS):
            generation = begin(bundle if attempt == 0 else bundle.model_copy(update={"compared": False}))
            try:
                why = _begun(generation, stop)
            except BaseException:
                generation.kill()
                raise
            if not why and generation.serving:
                return generation
            generation.kill()
            if not why:
                return None
            if generation.refused:
                break
            log.error("%s could not be begun: %s", bundle.version, why)
        if bundle is not bundles[-1]:
            refuse(bundle.version)
            log.error("refused %s, %s is served, as before: %s", bundle.version, bundles[-1].version, why)
    raise BundleError(why)


def _begun(generation: Generation, stop: ToldToStop) -> str:
    """Why it cannot be served, or "" once it is, or is no longer wanted."""
    while not generation.serving:
        if stop.wait(TICK_SECONDS):
            return ""
        if why := generation.advance():
            return why
    return ""
