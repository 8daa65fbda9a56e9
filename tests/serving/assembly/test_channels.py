from __future__ import annotations

import pytest

from contracts.bundle import bundle
from contracts.config.stages import Retrieve
from contracts.errors import BundleError
from serving.assembly.channels import write_channels


def test_the_manifest_says_that_the_channel_was_checked(channel_folder):
    metrics = bundle.verify(channel_folder).metrics
    assert metrics is not None
    assert metrics.channels is not None
    assert metrics.channels["sasrec"].rows == 64


def test_a_channel_that_was_not_trained_is_refused(trained, loaded, tmp_path):
    wanted = Retrieve.model_validate({"channels": {"hstu": {}}})
    with pytest.raises(BundleError, match="sluice train"):
        write_channels(trained, tmp_path / "retrieval", tmp_path / "parity", wanted, loaded.items, None, 0)
