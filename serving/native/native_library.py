"""gRPC's C++ library behind ctypes, by `native_server.cpp`; None where the machine lacks a compiler or the library's
headers (Debian: libgrpc++-dev). SLUICE_NATIVE=0 leaves it out."""

from __future__ import annotations

import ctypes
import functools
import logging
import os
import subprocess
from pathlib import Path

from models.compiled.compiled_library import compiled, compiler

SOURCE = Path(__file__).with_name("native_server.cpp")
HEADERS = sorted(SOURCE.parent.glob("*.h"))
MISSING, MOST_SAID = b"No such file or directory", 500  # what a compiler says where gRPC is not installed; characters
log = logging.getLogger("sluice.serving")
FLAGS = ("-O2", "-shared", "-fPIC", "-std=c++17")
LIBRARIES = ("-lgrpc++_unsecure", "-lgrpc_unsecure", "-lgpr", "-lpthread")

_P, _I, _N = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int32


class Told(ctypes.Structure):
    """One record of what happened to a call."""

    _fields_ = (("call", _P), ("kind", _I), ("data", _P), ("size", _I), ("method", _P), ("method_size", _I),
                ("deadline", ctypes.c_double))


class GateSettings(ctypes.Structure):
    """What the C++ is told of a gate; without methods there is none."""

    _fields_ = (("methods", _P), ("count", _I), ("tenant", ctypes.c_char_p), ("longest", ctypes.c_double),
                ("otherwise", ctypes.c_double), ("known_alone", _I))


SIGNATURES: dict[str, tuple[type | None, list[type]]] = {
    "server_begun": (_P, [ctypes.c_char_p, ctypes.c_int, _I, _P, _P, _I, _P, _P]),
    "server_look": (None, [_P, ctypes.c_double]),
    "server_told": (_I, [_P, _P, _I]),
    "server_stop": (None, [_P, ctypes.c_double]),
    "server_end": (None, [_P]),
    "call_read": (None, [_P, _P]),
    "call_write": (None, [_P, _P, ctypes.c_char_p, _I]),
    "call_finish": (None, [_P, _P, ctypes.c_char_p, _I, _N, ctypes.c_char_p, _I, ctypes.c_char_p, _I]),
    "call_metadata": (_P, [_P, _P]),
    "call_value": (_P, [_P, ctypes.c_char_p, _P]),
    "call_peer": (ctypes.c_char_p, [_P]),
}


def is_wanted() -> bool:
    """By SLUICE_NATIVE=1: whoever may call."""
    return os.environ.get("SLUICE_NATIVE") == "1"


@functools.cache
def path() -> Path | None:
    """The compiled library; None where there is none."""
    found = compiler()
    if os.environ.get("SLUICE_NATIVE") == "0" or found is None:
        return None
    try:
        return compiled("grpc", found, [SOURCE], FLAGS, HEADERS, LIBRARIES)
    except subprocess.CalledProcessError as error:
        if MISSING not in error.stderr:
            log.warning("gRPC's C++ library is there and is left out, since it cannot be compiled with: %s",
                        error.stderr.decode(errors="replace").strip()[:MOST_SAID])
    except (OSError, subprocess.SubprocessError) as error:
        log.warning("gRPC's C++ library is left out: %s", error)
    return None


@functools.cache
def library() -> ctypes.PyDLL | None:
    """Its functions, for microseconds of work: the interpreter is kept, which would not be had back at once."""
    found = path()
    try:
        return None if found is None else _signed(ctypes.PyDLL(str(found)))
    except OSError:  # built where gRPC's library was, which has gone
        return None


def stop(server: int, seconds: float) -> None:
    """Takes so long; without the interpreter."""
    ctypes.CDLL(str(path())).server_stop(ctypes.c_void_p(server), ctypes.c_double(seconds))


def _signed(loaded: ctypes.PyDLL) -> ctypes.PyDLL:
    for name, (result, arguments) in SIGNATURES.items():
        function = getattr(loaded, name)
        function.restype, function.argtypes = result, arguments
    return loaded
