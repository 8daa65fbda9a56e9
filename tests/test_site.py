"""`make docs` builds a site of all pages, without a warning."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"


@pytest.mark.slow
def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", DOCS, tmp_path / "site"],
                          capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    for page in DOCS.rglob("*.md"):
        assert (tmp_path / "site" / page.relative_to(DOCS).with_suffix(".html")).is_file(), page
