from __future__ import annotations

import re

from contracts import errors
from contracts.errors import ConfigError, GateRefused, RequestError, SluiceError


def test_the_tree_at_the_head_of_the_file_is_the_tree():
    drawn = re.findall(r"[├└]── (\w+)", errors.__doc__)
    defined = [name for name, value in vars(errors).items() if isinstance(value, type) and value is not SluiceError]
    assert drawn == defined


def test_exit_codes():
    assert (SluiceError.exit_code, ConfigError.exit_code, GateRefused.exit_code) == (1, 2, 3)


def test_a_request_error_knows_its_field():
    error = RequestError("limit", "is 0")
    assert (error.field, str(error)) == ("limit", "limit: is 0")
