from __future__ import annotations

from pipelines.sql.differences import REFUSED
from pipelines.sql.functions import EQUAL
from sluice.dev.sql_reference import PAGE, page


def test_the_page_in_the_repository_is_the_one_that_the_lists_give() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run python -m sluice.dev.sql_reference"


def test_every_function_is_named() -> None:
    assert [name for name in (*EQUAL, *REFUSED) if f"`{name}`" not in page()] == []
