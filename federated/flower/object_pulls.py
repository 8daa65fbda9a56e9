"""How soon a part of a message that has not come is asked for again.

Flower hands on a message before its parts: whoever takes it asks for them at once, and where one is not there waits a
second before asking again, then two, up to ten. A round has nine phases, and the parts of each pass several hands. Here
the first wait is FIRST_SECONDS and doubles up to the same ten. Flower 1.41 has no setting for it: a default of two of
its functions is replaced, and `tests/federated/flower/test_object_pulls.py` says that nobody names another.
"""

from __future__ import annotations

from flwr.supercore.inflatable.inflatable_utils import pull_and_inflate_object_from_tree, pull_objects

FIRST_SECONDS = 0.05
DEFAULT = "initial_backoff"


def ask_sooner() -> None:
    """In this process from now on."""
    for function in (pull_objects, pull_and_inflate_object_from_tree):
        function.__kwdefaults__ = {**(function.__kwdefaults__ or {}), DEFAULT: FIRST_SECONDS}
