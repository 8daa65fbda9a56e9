"""What tests that need a real Redis (or Valkey) say of themselves."""

from __future__ import annotations

import pytest

from benchmarks.freshness.redis_process import PROGRAM

needs_redis = pytest.mark.skipif(PROGRAM is None, reason="redis-server is not installed (make redis)")
