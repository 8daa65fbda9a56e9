from __future__ import annotations

import resource

import torch

from models.training.kept_memory import keep_freed_memory


def faults() -> int:
    """Pages that this process was given anew, by what it allocates, uses and frees ten times."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(10):
        parts = [torch.zeros(1 << 20) for _ in range(16)]
        del parts
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def test_what_is_freed_is_used_again() -> None:
    keep_freed_memory()
    faults()
    assert faults() < 16 << 10, "its pages were made anew more often than once"
