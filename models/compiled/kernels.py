"""The C++ of models/, compiled once a machine and loaded; None where no compiler is: all has a twin in torch or numpy.

Called through ctypes and not as an extension of torch's own mechanism (torch.utils.cpp_extension): that needs torch's
headers, Ninja and a minute of compiling where this takes two seconds, and ties the file to one version of torch. What
is given up, that torch sees an operator, matters to nobody here: in training each function is wrapped in one of
autograd's, in serving it reads arrays.

SLUICE_KERNELS=0 leaves it out.
"""

from __future__ import annotations

import ctypes
import functools
import os
import subprocess
from pathlib import Path

import torch
from torch import Tensor

from models.compiled.compiled_library import compiled, compiler

SOURCES, HEADERS = (sorted(Path(__file__).parents[1].glob(f"*/*.{kind}")) for kind in ("cpp", "h"))
FLAGS = ("-O3", "-march=native", "-ffp-contract=fast", "-fno-math-errno", "-fno-trapping-math", "-fopenmp", "-shared",
         "-fPIC", "-std=c++17")

_P, _I, _F = ctypes.c_void_p, ctypes.c_int64, ctypes.c_float
SIGNATURES: dict[str, tuple[type | None, list[type]]] = {
    "norm_relu_dropout_forward": (None, [_P, ctypes.c_int, _I, _I, _P, _P, _F, ctypes.c_int, ctypes.c_uint64,
                                         ctypes.c_int, _P, _P, _P, _P]),
    "norm_relu_dropout_backward": (None, [_P, _P, _P, ctypes.c_int, _I, _I, _P, _P, _P, ctypes.c_int, ctypes.c_int,
                                          _P, _P, _P]),
    "table_rows": (None, [_P, _I, _P, _P, _I, _I, ctypes.c_int, _P]),
    "dropped_ids": (None, [_P, _I, _I, _P, _I, _P, _P, ctypes.c_int32, ctypes.c_int, _P]),
    "joined_rows": (None, [_P, _I, _I, _I, _I, _P, _I, _I, ctypes.c_int, _P, _P]),
    "read_rows": (None, [_P, _I, _I, _I, _I, _P, _I, _I, ctypes.c_int, _P, _P]),
    "parted_rows": (None, [_P, _I, _I, _I, _I, _P, _I, _I, ctypes.c_int, _P, _P]),
    "taken_rows": (ctypes.c_int64, [_P, _I, _I, _P, _I, ctypes.c_int]),
    "summed_inputs": (ctypes.c_int64, [_P, _I, _I, ctypes.c_int, _P, _P, _P]),
    "summed_rows": (ctypes.c_int64, [_P, _P, _I, _I, _P, _P, _P]),
    "routed_rows": (ctypes.c_int64, [_P, _I, _I, _P, _P, _P]),
    "matrix_span": (ctypes.c_int64, []),
    "mlp_rows": (None, [_I, _P, _P, _P, _I, _I, _P, _I, _P, _P, _P, _P]),
    "field_deltas": (None, [_I, _I, _P, _P, _I, _P, _P, _P, _P, _I, _I, _I, *[_P] * 6, _I, *[_P] * 8]),
    "text_places": (None, [_I, _P, _P, _P, _P, _I, _P, _P, _P]),
    "row_adam": (None, [_P, _P, _P, _P, _P, _P, _P, _P, _I, _I, _I, _F, _F, _F, _F, _F, ctypes.c_int]),
}


@functools.cache
def library() -> ctypes.CDLL | None:
    """The compiled functions, with their signatures; None without a compiler, or where it fails."""
    found = compiler()
    if os.environ.get("SLUICE_KERNELS") == "0" or found is None:
        return None
    try:
        loaded = ctypes.CDLL(str(compiled("kernels", found, SOURCES, FLAGS, HEADERS)))
        for name, (result, arguments) in SIGNATURES.items():
            function = getattr(loaded, name)
            function.restype, function.argtypes = result, arguments
    except (OSError, subprocess.SubprocessError, AttributeError):  # the last where a source is missing
        return None
    return loaded


def beside(tensor: Tensor) -> ctypes.CDLL | None:
    """The library, where the tensor is in memory that it reads."""
    return library() if tensor.device.type == "cpu" else None


def usable(tensor: Tensor) -> ctypes.CDLL | None:
    """The library, where it can work on this tensor: contiguous, on a CPU, of float32 or bfloat16."""
    plain = tensor.device.type == "cpu" and tensor.dtype in (torch.float32, torch.bfloat16) and tensor.is_contiguous()
    return library() if plain else None
