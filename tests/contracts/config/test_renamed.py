"""A key that had another name is refused with the name that it has now, and the new name is one."""

from __future__ import annotations

from typing import Any

import pytest

from contracts.config.config import Config, parse
from contracts.config.renamed import RENAMED
from contracts.errors import ConfigError

TINY = """
name = "tiny"
[log]
path = "log"
[label]
expression = "clicked"
[[fields]]
name = "city"
kind = "categorical"
side = "user"
"""


@pytest.mark.parametrize(("old", "new"), RENAMED.items())
def test_an_old_name_is_refused_with_the_new_one(old, new):
    section, _, key = old.partition(".")
    with pytest.raises(ConfigError, match=f"{old}: is called {new} now; rename it"):
        parse(f"{TINY}[{section}]\n" + (f"{key} = 1\n" if key else ""))


@pytest.mark.parametrize("new", RENAMED.values())
def test_the_new_name_is_a_key(new):
    model: Any = Config
    for key in new.split("."):
        assert key in model.model_fields
        model = model.model_fields[key].annotation
