"""Callers who leave while their answers are written, over sockets."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator

import grpc
import pytest

from serving.bundle.loaded_bundle import LoadedBundle
from serving.metrics.request_observer import EndedCall, RequestObserver
from serving.native.grpc_server import GrpcServer
from serving.native.native_server import NativeServer
from serving.server.bundle_health import BundleHealth
from serving.server.gone_callers import FAILED_WRITE, LOGGER, leave_out_gone_callers
from serving.server.servicer import RankingServicer
from serving.stages.funnel import Funnel
from tests.serving.in_process_server import InProcessServer
from tests.serving.read_log import until
from tests.serving.silent_caller import SilentCaller

CALLERS, ASKED, TAKEN = 20, 20, 5


class Heard(RequestObserver):
    """Counts statuses."""

    def __init__(self) -> None:
        super().__init__()
        self.statuses = Counter[str]()

    def ended(self, call: EndedCall) -> None:
        self.statuses[call.status] += 1


def leave_in_mid_answer(loaded: LoadedBundle, made: Callable[..., GrpcServer]) -> Counter[str]:
    """Each caller takes nothing and goes; by then some of its answers wait to be taken. Of its calls those that gRPC
    has not handed over by then never are; of all others the end is heard."""
    heard = Heard()
    servicer = RankingServicer(Funnel(loaded), loaded.manifest, loaded.settings.serve, observer=heard)
    with InProcessServer(servicer, BundleHealth(loaded.manifest, None), made=made) as server:
        port = int(server.target.rpartition(":")[2])
        for _ in range(CALLERS):
            with SilentCaller(port) as caller:
                caller.ask("u01", ASKED)
                caller.answered(TAKEN)
        until(lambda: servicer.taken == heard.statuses.total())
    servicer.close()
    assert servicer.taken == heard.statuses.total() >= CALLERS * TAKEN
    return heard.statuses


@pytest.fixture
def said() -> Iterator[Counter[str]]:
    """What gRPC's core has said, by the kind of error, whether or not a line came of it."""
    logger, found = logging.getLogger(LOGGER), Counter[str]()

    def count(record: logging.LogRecord) -> bool:
        found[record.exc_info[0].__name__ if record.exc_info and record.exc_info[0] else ""] += 1
        return True

    before, logger.filters = logger.filters, [count]
    yield found
    logger.filters = before


def test_who_leaves_in_mid_answer_leaves_no_line_in_the_log(
    loaded: LoadedBundle, caplog: pytest.LogCaptureFixture, said: Counter[str]
) -> None:
    """And is counted as any other: an answer that was on its way as sent, the others as cancelled."""
    leave_out_gone_callers()
    leave_out_gone_callers()
    statuses = leave_in_mid_answer(loaded, grpc.aio.server)
    assert set(said) == {FAILED_WRITE}
    assert caplog.records == []
    assert set(statuses) <= {"OK", "CANCELLED", "RESOURCE_EXHAUSTED"}


def test_the_native_server_has_nothing_to_say_of_them(loaded: LoadedBundle, caplog: pytest.LogCaptureFixture) -> None:
    statuses = leave_in_mid_answer(loaded, NativeServer)
    assert caplog.records == []
    assert set(statuses) <= {"OK", "CANCELLED", "RESOURCE_EXHAUSTED"}


def test_metadata_that_are_no_text_leave_no_line_in_the_log(
    loaded: LoadedBundle, caplog: pytest.LogCaptureFixture, said: Counter[str]
) -> None:
    leave_out_gone_callers()
    servicer = RankingServicer(Funnel(loaded), loaded.manifest, loaded.settings.serve)
    with InProcessServer(servicer, BundleHealth(loaded.manifest, None), made=grpc.aio.server) as server, \
            SilentCaller(int(server.target.rpartition(":")[2])) as caller:
        caller.ask("u01", 1, authorization=b"Bearer secret\xff")
        until(lambda: servicer.taken == 1)
    servicer.close()
    assert "UnicodeDecodeError" in said
    assert caplog.records == []


def test_what_else_grpc_has_to_say_is_said(caplog: pytest.LogCaptureFixture) -> None:
    leave_out_gone_callers()
    try:
        raise ValueError("of a method")
    except ValueError:
        logging.getLogger(LOGGER).exception("unexpected")
    logging.getLogger(LOGGER).error("plain")
    assert [record.getMessage() for record in caplog.records] == ["unexpected", "plain"]
