"""The archive of a run, which holds its code, is unpacked once on a node, and sent once from its SuperNode to what
handles messages: to each message belongs the same archive, of some MiB and three hundred files."""

from __future__ import annotations

import hashlib
from pathlib import Path

from flwr.cli.install import install_from_fab
from flwr.common.serde import fab_to_proto
from flwr.proto.fab_pb2 import Fab as ProtoFab
from flwr.supercore.fab import Fab
from flwr.supercore.utils import get_flwr_home

from contracts.atomic_write import durable

UNPACKED = "unpacked"
KNOWN = b""  # in place of an archive that is unpacked


def place_of(hashed: str) -> Path | None:
    """Where the archive of this SHA-256 is unpacked, if it is."""
    known = get_flwr_home() / UNPACKED / hashed
    there = Path(known.read_text(encoding="utf-8")) if known.exists() else None
    return there if there is not None and there.is_dir() else None


def unpacked(archive: bytes, install_dir: Path | None = None, skip_prompt: bool = False) -> Path | None:
    """Where Flower has unpacked and checked the archive, the first time that it is asked for on this node. Nothing for
    KNOWN: whoever sent that has looked."""
    if archive == KNOWN:
        return None
    hashed = hashlib.sha256(archive).hexdigest()
    if there := place_of(hashed):
        return there
    there, known = install_from_fab(archive, install_dir, skip_prompt), get_flwr_home() / UNPACKED / hashed
    known.parent.mkdir(parents=True, exist_ok=True)
    with durable(known) as draft:
        draft.write_text(str(there), encoding="utf-8")
    return there


def sent_once(fab: Fab) -> ProtoFab:
    """As Flower sends it; without the archive where it is unpacked."""
    return fab_to_proto(fab if place_of(fab.hash_str) is None else Fab(fab.hash_str, KNOWN, fab.verifications))
