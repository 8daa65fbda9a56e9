"""What is done once a call has ended, each for itself: of gRPC's own callbacks one that raises takes along those behind
it, and what they were to give back is held for ever."""

from __future__ import annotations

import logging
from collections.abc import Callable

import grpc

Work = Callable[[grpc.aio.ServicerContext], None]
log = logging.getLogger("sluice.serving")


def after(context: grpc.aio.ServicerContext, work: Work) -> None:
    """Does the work when the call has ended; what it raises is a line of the log."""
    def done(ended: grpc.aio.ServicerContext) -> None:
        try:
            work(ended)
        except Exception as error:
            log.error("something that follows a call has failed", exc_info=error)

    context.add_done_callback(done)
