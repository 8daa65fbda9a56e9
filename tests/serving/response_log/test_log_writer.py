"""One turn after another, without a thread: what a turn could not do is done in a later one, once."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from dataclasses import fields, replace
from datetime import timedelta
from pathlib import Path

import pytest

from serving.response_log import ledger as ledgers
from serving.response_log.journal import Journal
from serving.response_log.response_record import LOST, ResponseRecord
from tests.serving.driven_log_writer import SERVED, Driven
from tests.serving.logged_responses import NOON, response
from tests.serving.read_log import until


@pytest.fixture
def driven(tmp_path: Path) -> Iterator[Driven]:
    made = Driven(tmp_path)
    yield made
    made.writer.finish()
    made.writer.ledger.close(remove=True)


def test_a_turn_appends_and_the_end_publishes(driven: Driven) -> None:
    driven.give(response(1), response(2))
    driven.writer.turn()
    assert (driven.writer.waiting, driven.writer.unsettled, driven.rows()) == (0, 2, [])
    assert driven.writer.read == response(1).size * 2
    assert driven.writer.finish()
    assert driven.rows() == [("r1", 1), ("r2", 1)]
    assert driven.writer.unsettled == 0


def test_days_have_files_of_their_own(driven: Driven) -> None:
    driven.give(response(1), response(2, NOON + timedelta(days=1)), response(3, NOON + timedelta(days=1)))
    assert driven.writer.finish()
    files = sorted(path.relative_to(driven.folder).parts[0] for path in driven.folder.glob("day=*/*.parquet"))
    assert files == ["day=2026-03-01", "day=2026-03-02"]


def test_many_rows_that_cannot_be_written_cost_no_others(driven: Driven) -> None:
    driven.give(*(replace(response(number), scores=["much"]) if number % 5 == 0 else response(number)  # type: ignore[list-item]
                  for number in range(20)))
    assert driven.writer.finish()
    assert [name for name, _ in driven.rows()][:1] == [LOST]
    assert sum(calls for _, calls in driven.rows()) == 20
    assert driven.writer.lost == 4


class Damaged(ResponseRecord):
    """Held, and no row can be made of it."""

    def row(self) -> ResponseRecord:
        raise ZeroDivisionError("damaged")


def test_what_no_row_can_be_made_of_is_counted_and_costs_no_others(driven: Driven) -> None:
    bad = Damaged(**{one.name: getattr(response(2), one.name) for one in fields(ResponseRecord)})
    driven.give(response(1), bad, response(3))
    driven.writer.turn()
    driven.give(bad)
    driven.writer.turn()
    assert driven.writer.read == sum(one.size for one in (response(1), bad, response(3), bad))
    assert driven.writer.finish()
    assert driven.rows() == [(LOST, 1), (LOST, 1), ("r1", 1), ("r3", 1)]


def test_counts_are_rows_once(driven: Driven) -> None:
    driven.totals["RESOURCE_EXHAUSTED"] = 3
    driven.writer.turn()
    driven.writer.turn()
    driven.totals["RESOURCE_EXHAUSTED"] = 5
    driven.writer.ledger.take(5)
    assert driven.writer.finish()
    assert driven.rows() == [("RESOURCE_EXHAUSTED", 2), ("RESOURCE_EXHAUSTED", 3)]


def test_a_journal_removed_before_it_was_published_is_counted(driven: Driven) -> None:
    driven.give(response(1), response(2))
    driven.writer.turn()
    next(iter(list(driven.folder.glob("day=*/.*.arrows")))).unlink()
    driven.writer.finish()
    assert driven.writer.finish()
    assert driven.rows() == [(LOST, 2)]


def test_the_own_rows_are_written_while_what_a_dead_writer_left_hangs(driven: Driven) -> None:
    driven.give(response(1))
    dead = ledgers.new(driven.folder, "dead", SERVED)
    journal = Journal(driven.folder, "2026-03-01", "dead", 1)
    journal.close()
    dead.close(remove=False)
    journal.path.unlink()
    os.mkfifo(journal.path)  # who reads it waits for one who writes
    end = threading.Thread(target=driven.writer.finish, daemon=True)
    end.start()
    until(lambda: driven.rows() == [("r1", 1)])
    while end.is_alive():
        with contextlib.suppress(OSError):
            os.close(os.open(journal.path, os.O_WRONLY | os.O_NONBLOCK))
        end.join(0.01)
    journal.path.unlink(missing_ok=True)
