"""A script on a real file system that is soon full, in a mount namespace of its own: without root where the kernel lets
anybody have one, and gone with the script's process, however that ends."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SPACE = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"]), "sh", "-c"]
MOUNT = 'mount -t tmpfs -o size="$1" none "$2"'
FILL = """
import os, sys
from pathlib import Path
disk = Path(sys.argv[1])

def fill():
    try:
        with (disk / "filler").open("ab", buffering=0) as filler:
            while filler.write(b"x" * 4096):
                pass
    except OSError:
        pass

def tried(action):
    try:
        return action()
    except OSError as error:
        return error.strerror
"""


def run(code: str, disk: Path, size: str, *arguments: Path) -> str:
    """What the script prints; its arguments are `disk`, a folder to lie the file system of so many bytes over, and the
    others. Skips the test where there are no such namespaces."""
    disk.mkdir(exist_ok=True)
    where = ["sh", size, str(disk)]
    try:
        possible = subprocess.run([*SPACE, MOUNT, *where], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        possible = False
    if not possible:
        pytest.skip("this machine gives out no mount namespaces (unshare --mount)")
    script = [*where, sys.executable, "-c", textwrap.dedent(code), str(disk), *map(str, arguments)]
    done = subprocess.run([*SPACE, f'{MOUNT} && shift 2 && exec "$@"', *script], cwd=ROOT, capture_output=True,
                          text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
