"""In which precision the matrix products of a ranker's training are made; weights, losses and sums are float32 in any.

`auto` is bf16 where the device multiplies it and the layers are wide enough for that to count: at WIDE units or more
and as many rows in a batch. Scores are always computed in float32.
"""

from __future__ import annotations

import torch

from contracts.config.training import Train

PRECISIONS = ("fp32", "bf16")
WIDE = 256
FEATURES = ("amx_bf16", "avx512_bf16", "sve_bf16", "bf16")  # of processors, as torch.cpu names them


def half_precision(settings: Train, device: torch.device, batch_rows: int) -> bool:
    """Whether `settings` mean bf16 on this device for batches of this size."""
    if settings.precision != "auto":
        return settings.precision == "bf16"
    return min(max(settings.hidden, default=0), batch_rows) >= WIDE and multiplies_bf16(device)


def fast_precisions(device: torch.device) -> list[str]:
    """Those worth a comparison of speed: bf16 where the device multiplies it in hardware; elsewhere it takes a tenth
    of float32's speed and less."""
    return [*PRECISIONS] if multiplies_bf16(device) else ["fp32"]


def multiplies_bf16(device: torch.device) -> bool:
    """In hardware; False where torch cannot tell."""
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    known = torch.cpu.get_capabilities() if hasattr(torch.cpu, "get_capabilities") else {}
    return any(known.get(name, False) for name in FEATURES)
