"""Networks as they serve, with the compiled code and without."""

from __future__ import annotations

import pytest

from models.layers import kernels


@pytest.fixture(params=["compiled", "numpy"])
def either(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """What is made in the test computes so."""
    if request.param == "numpy":
        monkeypatch.setattr(kernels, "library", lambda: None)
    elif kernels.library() is None:
        pytest.skip("no C++ compiler on this machine")
    return str(request.param)
