"""What lies on one client's disk, and what every client knows.

    FOLDER/public/           config.json, feature_spec.json, identities.json (public keys by client): the same for all
    FOLDER/clients/N/        samples.safetensors: the client's rows, encoded; later.safetensors: rows of the validation
                             window, which train nothing; answers/: its first answers, for ever;
                             identity.pem: the private key that signs what it announces
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import torch

from contracts.bundle.bundle import load_weights, save_weights
from contracts.config.config import Config
from contracts.errors import DataError
from contracts.features.feature_spec import FeatureSpec
from federated.secure_aggregation.identity import Identity
from models.examples.batches import Batch, FeatureBlock

CONFIG, SAMPLES, LATER = "config.json", "samples.safetensors", "later.safetensors"
IDENTITY, IDENTITIES = "identity.pem", "identities.json"


def public(folder: Path) -> Path:
    return folder / "public"


def client(folder: Path, number: int) -> Path:
    return folder / "clients" / f"{number:06d}"


def write_public(folder: Path, config: Config, spec: FeatureSpec) -> None:
    public(folder).mkdir(parents=True, exist_ok=True)
    (public(folder) / CONFIG).write_text(config.model_dump_json(), encoding="utf-8")
    spec.write(public(folder))


def read_public(folder: Path) -> tuple[Config, FeatureSpec]:
    path = public(folder) / CONFIG
    if not path.exists():
        raise DataError(f"{path} is not there; `sluice federate` prepares the folder of a federated run")
    return Config.model_validate_json(path.read_text(encoding="utf-8")), FeatureSpec.read(public(folder))


def write_client(folder: Path, number: int, batch: Batch, file: str = SAMPLES) -> None:
    own = client(folder, number)
    own.mkdir(parents=True, exist_ok=True)
    save_weights(own / file, {
        "request_ids": batch.request.ids.numpy(), "request_dense": batch.request.dense.numpy(),
        "candidate_ids": batch.candidate.ids.numpy(), "candidate_dense": batch.candidate.dense.numpy(),
        "label": batch.label.numpy(), "position": batch.position.numpy(),
    })


def read_client(folder: Path, number: int, file: str = SAMPLES) -> Batch:
    path = client(folder, number) / file
    if not path.exists():
        raise DataError(f"{path} is not there; a client trains on its own samples alone")
    arrays = {name: torch.from_numpy(np.array(array)) for name, array in load_weights(path).items()}
    nobody = torch.zeros(len(arrays["label"]), dtype=torch.int64)
    return Batch(
        FeatureBlock(arrays["request_ids"], arrays["request_dense"]),
        FeatureBlock(arrays["candidate_ids"], arrays["candidate_dense"]),
        arrays["label"], arrays["position"], nobody, nobody,
    )


def write_identities(folder: Path) -> None:
    """A key for each client that has none, then the list of the public halves."""
    public_keys = []
    for number in range(count(folder)):
        path = client(folder, number) / IDENTITY
        if not path.exists():
            aside = path.with_name(f".{IDENTITY}")
            aside.touch(mode=0o600)
            aside.write_bytes(Identity.draw(number).pem())
            aside.replace(path)
        public_keys.append(read_identity(folder, number).public().hex())
    (public(folder) / IDENTITIES).write_text(json.dumps(public_keys), encoding="utf-8")


def read_identity(folder: Path, number: int) -> Identity:
    path = client(folder, number) / IDENTITY
    if not path.exists():
        raise DataError(f"{path} is not there; a client signs with its own key what it announces in a round")
    return Identity.from_pem(number, path.read_bytes())


def identities(folder: Path) -> tuple[bytes, ...]:
    """Public keys of all clients by their number."""
    path = public(folder) / IDENTITIES
    if not path.exists():
        raise DataError(f"{path} is not there; clients know each other by it, `sluice federate` writes it")
    return tuple(bytes.fromhex(key) for key in json.loads(path.read_text(encoding="utf-8")))


def count(folder: Path) -> int:
    return len(list((folder / "clients").glob(f"*/{SAMPLES}")))
