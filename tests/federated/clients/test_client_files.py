"""Files of a client and of all."""

from __future__ import annotations

import shutil
import stat
import subprocess
from pathlib import Path

import pytest
import torch

from contracts.errors import DataError
from federated.clients import client_files
from models.examples.batches import Batch, FeatureBlock
from tests.federated import small_world


def test_identities_are_drawn_once_and_the_public_halves_published(tmp_path):
    for number in range(3):
        client_files.client(tmp_path, number).mkdir(parents=True)
        (client_files.client(tmp_path, number) / client_files.SAMPLES).touch()
    client_files.public(tmp_path).mkdir()
    client_files.write_identities(tmp_path)
    published = client_files.identities(tmp_path)
    assert len(set(published)) == 3
    assert [client_files.read_identity(tmp_path, number).public() for number in range(3)] == list(published)
    file = client_files.client(tmp_path, 1) / client_files.IDENTITY
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    client_files.write_identities(tmp_path)
    assert client_files.identities(tmp_path) == published
    assert file.read_bytes() not in b"".join(path.read_bytes() for path in client_files.public(tmp_path).iterdir())
    shutil.rmtree(client_files.public(tmp_path))
    with pytest.raises(DataError, match="know each other"):
        client_files.identities(tmp_path)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
def test_a_key_that_the_documented_commands_make_is_an_identity_and_what_they_print_its_public_half(tmp_path):
    """docs/how-to/federated_deployment.md: client 7 makes its own."""
    text = (Path(__file__).parents[3] / "docs" / "how-to" / "federated_deployment.md").read_text(encoding="utf-8")
    commands = [line for line in text.splitlines() if line.startswith(("openssl genpkey", "openssl pkey"))]
    assert len(commands) == 2
    client_files.client(tmp_path, 7).mkdir(parents=True)
    done = subprocess.run(["bash", "-ec", "\n".join(commands)], cwd=tmp_path, stdout=subprocess.PIPE, text=True,
                          check=True)
    assert client_files.read_identity(tmp_path, 7).public().hex() == done.stdout.strip()


def test_rows_come_back_without_who_the_user_is(tmp_path):
    request = FeatureBlock(torch.arange(12, dtype=torch.int32).view(3, 4), torch.rand(3, 2))
    candidate = FeatureBlock(torch.arange(6, dtype=torch.int32).view(3, 2), torch.rand(3, 1))
    columns = torch.rand(3), torch.ones(3, dtype=torch.int64), torch.arange(3) + 9, torch.arange(3)
    batch = Batch(request, candidate, *columns)
    client_files.write_client(tmp_path, 4, batch)
    again = client_files.read_client(tmp_path, 4)
    for left, right in ((again.request, batch.request), (again.candidate, batch.candidate)):
        assert (left.ids == right.ids).all()
        assert (left.dense == right.dense).all()
    assert (again.label == batch.label).all()
    assert not again.user.any()
    assert client_files.count(tmp_path) == 1
    with pytest.raises(DataError, match="its own samples alone"):
        client_files.read_client(tmp_path, 5)


def test_what_all_know_comes_back(tmp_path):
    client_files.write_public(tmp_path, small_world.config(), small_world.spec())
    assert client_files.read_public(tmp_path) == (small_world.config(), small_world.spec())


@pytest.mark.parametrize("text", ["{}", '["zz"]', "[1]", "nonsense"])
def test_a_list_of_keys_that_is_none_is_refused(tmp_path, text):
    client_files.public(tmp_path).mkdir()
    (client_files.public(tmp_path) / client_files.IDENTITIES).write_text(text)
    with pytest.raises(DataError, match="no list of hexadecimal keys"):
        client_files.identities(tmp_path)
