"""What lies on one client's disk, and what every client knows.

    FOLDER/public/           config.json, feature_spec.json, vocabularies/, identities.json (public keys by client): the
                             same for all
    FOLDER/clients/N/        samples.safetensors: the client's rows, encoded; later.safetensors: rows of the validation
                             window, which train nothing; identity.pem: the private key that signs what it announces;
                             memory/: its first answers and ledger, for ever, whatever run or day comes next (a link to
                             MEMORY/USER where one process plays all clients)
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from pydantic import ConfigDict, RootModel, ValidationError

from contracts.atomic_write import aside, write_json
from contracts.bundle.bundle import load_weights, save_weights
from contracts.config.config import Config
from contracts.errors import DataError
from contracts.features import vocabulary
from contracts.features.feature_spec import FeatureSpec
from contracts.features.vocabulary import Vocabulary
from federated.secure_aggregation.identity import Identity
from models.examples.batches import Batch, FeatureBlock

CONFIG, SAMPLES, LATER = "config.json", "samples.safetensors", "later.safetensors"
IDENTITY, IDENTITIES = "identity.pem", "identities.json"


class PublicKeys(RootModel[tuple[str, ...]]):
    """identities.json: the public half of each client's key by its number, 32 bytes as hexadecimal digits."""

    model_config = ConfigDict(frozen=True)

    def raw(self) -> tuple[bytes, ...]:
        """Raises ValueError on what are no hexadecimal digits."""
        return tuple(bytes.fromhex(key) for key in self.root)


def public(folder: Path) -> Path:
    """Where the files lie that all clients know."""
    return folder / "public"


def client(folder: Path, number: int) -> Path:
    """Where one client's files lie."""
    return folder / "clients" / f"{number:06d}"


def memory(folder: Path, number: int) -> Path:
    """What one client keeps from run to run."""
    return client(folder, number) / "memory"


def link_memory(folder: Path, number: int, kept: Path) -> None:
    """The memory of the client of that number lies in `kept`, which outlives the folder."""
    kept.mkdir(mode=0o700, parents=True, exist_ok=True)
    memory(folder, number).unlink(missing_ok=True)
    memory(folder, number).symlink_to(kept.resolve(), target_is_directory=True)


def write_public(
    folder: Path, config: Config, spec: FeatureSpec, vocabularies: Mapping[str, Vocabulary] | None = None
) -> None:
    """The configuration, the spec and its vocabularies, not yet the identities."""
    public(folder).mkdir(parents=True, exist_ok=True)
    (public(folder) / CONFIG).write_text(config.model_dump_json(), encoding="utf-8")
    spec.write(public(folder))
    for name in sorted({field.vocabulary for field in spec.fields if field.vocabulary} & set(vocabularies or {})):
        vocabulary.write(public(folder), name, (vocabularies or {})[name])


def read_public(folder: Path) -> tuple[Config, FeatureSpec]:
    """Raises DataError where the folder was not prepared."""
    path = public(folder) / CONFIG
    if not path.exists():
        raise DataError(f"{path} is not there; `sluice federate` prepares the folder of a federated run")
    return Config.model_validate_json(path.read_text(encoding="utf-8")), FeatureSpec.read(public(folder))


def write_client(folder: Path, number: int, batch: Batch, file: str = SAMPLES) -> None:
    """A client's rows without who the user is; `file` is SAMPLES, which it trains on, or LATER."""
    client(folder, number).mkdir(parents=True, exist_ok=True)
    save_weights(client(folder, number) / file, arrays(batch))


def arrays(batch: Batch) -> dict[str, np.ndarray]:
    """What a client's file holds of its rows: all but who the user is and which rows they are."""
    return {
        "request_ids": batch.request.ids.numpy(), "request_dense": batch.request.dense.numpy(),
        "candidate_ids": batch.candidate.ids.numpy(), "candidate_dense": batch.candidate.dense.numpy(),
        "label": batch.label.numpy(), "position": batch.position.numpy(),
    }


def read_client(folder: Path, number: int, file: str = SAMPLES) -> Batch:
    """Raises DataError where this client's rows do not lie."""
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
    numbers = range(count(folder))
    for number in numbers:
        path = client(folder, number) / IDENTITY
        if not path.exists():
            with aside(path) as draft:
                draft.touch(mode=0o600)
                draft.write_bytes(Identity.draw(number).pem())
    keys = PublicKeys(tuple(read_identity(folder, number).public().hex() for number in numbers))
    write_json(public(folder) / IDENTITIES, keys.model_dump(mode="json"), None)


def read_identity(folder: Path, number: int) -> Identity:
    """Raises DataError where this client's key does not lie, or is none."""
    path = client(folder, number) / IDENTITY
    if not path.exists():
        raise DataError(f"{path} is not there; a client signs with its own key what it announces in a round")
    return Identity.from_pem(number, path.read_bytes())


def identities(folder: Path) -> tuple[bytes, ...]:
    """Public keys of all clients by their number. Raises DataError where the list is missing or none."""
    path = public(folder) / IDENTITIES
    if not path.exists():
        raise DataError(f"{path} is not there; clients know each other by it, `sluice federate` writes it")
    try:
        return PublicKeys.model_validate_json(path.read_bytes()).raw()
    except (ValidationError, ValueError) as error:
        raise DataError(f"{path} is no list of hexadecimal keys by client number: {error}") from None


def count(folder: Path) -> int:
    """Of the clients whose files lie here."""
    return len(list((folder / "clients").glob(f"*/{SAMPLES}")))
