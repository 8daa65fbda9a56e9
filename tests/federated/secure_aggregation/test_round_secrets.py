"""What a client announces is the public side of what it keeps, and each secret serves one purpose."""

from __future__ import annotations

import pytest

from contracts.errors import ProtocolError
from federated.secure_aggregation import sealed_box
from federated.secure_aggregation.round_secrets import (
    ANNOUNCEMENT_BYTES,
    INSTANCES,
    SHARED,
    Announcement,
    RoundSecrets,
    commitment,
    mask_key,
    self_key,
)


def test_an_announcement_is_the_public_side():
    secrets = RoundSecrets.draw()
    announced = Announcement(secrets.announcement())
    assert len(announced.raw) == ANNOUNCEMENT_BYTES
    assert announced.box == sealed_box.public_bytes(secrets.box())
    for instance in INSTANCES:
        assert announced.mask(instance) == sealed_box.public_bytes(secrets.mask_key(instance))
        assert announced.commitment(instance) == commitment(secrets.shared(instance, "self"))


def test_whoever_opens_a_seed_has_the_key_of_its_instance_alone():
    secrets = RoundSecrets.draw()
    opened = sealed_box.public_bytes(mask_key(secrets.shared("union", "mask"), "union"))
    assert opened == sealed_box.public_bytes(secrets.mask_key("union"))
    assert opened != sealed_box.public_bytes(secrets.mask_key("update"))


def test_no_seed_is_used_twice():
    secrets = RoundSecrets.draw()
    seeds = {secrets.shared(*name) for name in SHARED}
    assert len(seeds) == len(SHARED)
    assert not any(seed in secrets.announcement() for seed in seeds)
    assert len({self_key(bytes(16), context, instance) for context in (b"1", b"2") for instance in INSTANCES}) == 4


@pytest.mark.parametrize("size", [0, ANNOUNCEMENT_BYTES - 1, ANNOUNCEMENT_BYTES + 1])
def test_an_announcement_of_another_size_is_refused(size):
    with pytest.raises(ProtocolError, match=f"has {size} bytes"):
        Announcement(bytes(size))
