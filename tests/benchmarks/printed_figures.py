"""What a benchmark printed: its last line as JSON, and every number in it."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest


def last_line(text: str) -> Any:
    """Refuses NaN and infinity, which JSON does not have."""
    return json.loads(text.strip().splitlines()[-1], parse_constant=lambda name: pytest.fail(f"{name} was printed"))


def numbers(value: Any) -> Iterator[float]:
    """Those in lists and dictionaries, at any depth."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for part in value:
            yield from numbers(part)
    elif isinstance(value, int | float):
        yield value


def all_finite(value: Any) -> bool:
    found = list(numbers(value))
    return bool(found) and all(map(math.isfinite, found))


def refuses(main: Callable[[list[str]], None], *options: str) -> bool:
    """As wrong use of the command line: exit code 2."""
    with pytest.raises(SystemExit) as refused:
        main(list(options))
    return refused.value.code == 2
