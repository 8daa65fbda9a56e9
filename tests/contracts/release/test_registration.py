"""What the registry was told is read back as it was."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from contracts.release.registration import RegistrationSummary, RollbackResult, VersionTags
from contracts.summaries import summary

TAGS = VersionTags.model_validate({"bundle_version": "shop-1", "content_hash": "c0ffee", "ranker": "dnn"})


def test_a_registration_is_read_back_with_all_tags_of_the_registry(tmp_path: Path) -> None:
    given = RegistrationSummary(name="shop", number="1", alias="challenger", registry="sqlite:///r.db", tags=TAGS)
    summary.write(tmp_path, given)
    assert summary.read(tmp_path, RegistrationSummary) == given
    assert given.plain()["tags"] == {"bundle_version": "shop-1", "content_hash": "c0ffee", "ranker": "dnn"}


def test_a_version_without_its_bundle_is_refused() -> None:
    with pytest.raises(ValidationError, match="content_hash"):
        VersionTags.model_validate({"bundle_version": "shop-1"})


def test_nobody_was_left_where_nothing_was_rolled_back() -> None:
    assert "left" not in RollbackResult(rolled_back=False, champion="shop-2", number="2").plain()
