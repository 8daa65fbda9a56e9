"""The Java of Apache Spark's local mode: which one there is, and how it starts.

At each start Java reads, checks and links thousands of classes, for seconds in which both cores have work. A job
that uses most of them leaves an archive when it ends (class data sharing, JEP 350; about 180 MB), which later sessions
map into memory instead. That costs more than one session saves, so that the first one leaves a mark alone, and the
archive is for places that outlive a session. Both lie at `~/.cache/sluice` (or XDG_CACHE_HOME) by the digest of what
they fit, and may be removed at any time. Java itself passes over an archive that does not fit its class path.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

import pyspark

from contracts.errors import SluiceError

JAVA_NEEDED = 17
CURE = f"install a Java runtime {JAVA_NEEDED} or newer (Debian: openjdk-17-jre-headless) or point JAVA_HOME at one"
# Minutes of many short queries: what the second compiler and a concurrent collector do pays in longer ones. Generated
# methods of more than 8,000 bytes, and loops that run once, would else be interpreted to their end.
QUICK = ("-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m -XX:+UseSerialGC -XX:-DontCompileHugeMethods "
         "-XX:Tier3BackEdgeThreshold=10000")
SHARES = "sharing"  # what `java -version` says where Java's own classes come from an archive, which ours builds on
SILENT = "-Xlog:cds*=off -Xlog:class+path=off"


def check_java() -> str:
    """What `java -version` says. Raises SluiceError when no Java 17 or newer is found where Spark looks for it."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else "java"
    if shutil.which(java) is None:
        raise SluiceError(f"Spark needs Java {JAVA_NEEDED} or newer and {java!r} is not there; {CURE}")
    printed = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    said = printed.stderr + printed.stdout
    version = java_version(said)
    if version is None or version < JAVA_NEEDED:
        raise SluiceError(
            f"Spark needs Java {JAVA_NEEDED} or newer, {java!r} is {version or 'of an unknown version'}; {CURE}"
        )
    return said


def java_version(text: str) -> int | None:
    """Major version in what `java -version` prints; 8 for the old style 1.8."""
    found = re.search(r'version "(\d+)(?:\.(\d+))?', text)
    if found is None:
        return None
    major = int(found[1])
    return int(found[2] or 0) if major == 1 else major


def archived_classes(java: str, leaves: bool) -> str:
    """Options by which Java, which says `java` of itself, maps the archive, or writes it at its end where there is
    none, this session is to leave one and an earlier one was as well; none where it can do neither.
    """
    if SHARES not in java:
        return ""
    archive = _archive(java)
    if _is_whole(archive):
        return f'{SILENT} -XX:SharedArchiveFile="{archive}"'
    if leaves and _was_marked(archive.with_suffix(".seen")):
        return f'{SILENT} -XX:ArchiveClassesAtExit="{archive}"'
    return ""


def _archive(java: str) -> Path:
    home = os.environ.get("SPARK_HOME") or str(Path(pyspark.__file__).parent)
    mark = hashlib.sha256("\n".join((java, pyspark.__version__, home, QUICK)).encode()).hexdigest()[:16]
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return root / "sluice" / f"spark-classes-{mark}.jsa"


def _is_whole(archive: Path) -> bool:
    """Java writes the head of the file last."""
    if not archive.exists():
        return False
    with archive.open("rb") as file:
        return any(file.read(4))


def _was_marked(mark: Path) -> bool:
    """It is from now on, where it can be."""
    if mark.exists():
        return os.access(mark.parent, os.W_OK)
    with suppress(OSError):
        mark.parent.mkdir(parents=True, exist_ok=True)
        mark.touch()
    return False
