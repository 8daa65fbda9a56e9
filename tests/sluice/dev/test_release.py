"""A release moves the version forward and dates what is under *Unreleased*."""

from __future__ import annotations

from datetime import date

import pytest

from contracts.errors import ConfigError
from sluice.dev.release import ROOT, current, released

PROJECT = 'name = "sluice"\nversion = "0.9.1"\n'
CHANGELOG = "# Changelog\n\n## Unreleased\n\n* Better.\n\n## 0.9.1 (2026-01-01)\n\n* Good.\n"


def test_the_version_moves_and_the_changes_get_its_date():
    project, changelog = released(PROJECT, CHANGELOG, "0.10.0", date(2026, 2, 3))
    assert current(project) == (0, 10, 0)
    assert changelog.index("## Unreleased") < changelog.index("## 0.10.0 (2026-02-03)") < changelog.index("* Better.")
    assert changelog.endswith("## 0.9.1 (2026-01-01)\n\n* Good.\n")


@pytest.mark.parametrize("version", ["0.9.1", "0.9.0", "1.0", "new"])
def test_a_version_that_is_no_step_forward_is_refused(version):
    with pytest.raises(ConfigError, match=r"does not come after 0\.9\.1"):
        released(PROJECT, CHANGELOG, version, date(2026, 2, 3))


def test_nothing_to_say_is_nothing_to_release():
    project, changelog = released(PROJECT, CHANGELOG, "1.0.0", date(2026, 2, 3))
    with pytest.raises(ConfigError, match="nothing under"):
        released(project, changelog, "1.0.1", date(2026, 2, 4))


def test_the_changelog_knows_the_version_that_stands_in_the_project():
    version = ".".join(map(str, current((ROOT / "pyproject.toml").read_text("utf-8"))))
    assert f"## {version} (" in (ROOT / "CHANGELOG.md").read_text("utf-8")
