"""Users of the log become clients: each one's training rows in a folder of its own, beside what all may know.

The spec is cut to fields that a client can compute: no counters, no user id. What a user table would hold becomes
context of a request, so that a server of the bundle needs no table of users; the history stays the user's and comes as
recent items. Encodings (vocabularies, bins) are public knowledge here: those of items come from the public item table.
"""

from __future__ import annotations

import hashlib
import json
import random
import shutil
from pathlib import Path

import numpy as np
import torch

from contracts.artifacts import Artifacts
from contracts.bundle import bundle
from contracts.config.config import Config
from contracts.errors import ConfigError, DataError
from contracts.features import vocabulary
from contracts.features.feature_spec import FeatureSpec
from federated.clients import client_files
from federated.clients.row_space import require_federable
from models.examples.batches import BUFFER_ROWS, Batch, ExampleSet, FeatureBlock

CLIENTS, TRAINING = "clients.fingerprint", "training.fingerprint"
MEASURED = ("validation", "test")  # windows


def federated_spec(config: Config, spec: FeatureSpec) -> FeatureSpec:
    """Raises ConfigError on fields that only a centre knows, and on unknown ones."""
    wanted = config.federated.fields or tuple(field.name for field in spec.fields)
    unknown = sorted(set(wanted) - spec.by_name.keys())
    if unknown:
        raise ConfigError(f"federated.fields names {unknown}, which the spec lacks; it has {list(spec.by_name)}")
    chosen = [field for field in spec.fields if field.name in wanted]
    columns = {field.name: field.source_column for field in config.fields}
    for field in chosen:
        if config.log.user_id in {columns.get(part, part) for part in (field.name, *field.parts)}:
            raise ConfigError(f"field {field.name!r} is made of the user's identity, which no client gives away; leave "
                              "it out with federated.fields")
    moved = [f.model_copy(update={"side": "context"}) if f.side == "user" and f.kind != "sequence" else f
             for f in chosen]
    federated = spec.model_copy(update={"fields": tuple(moved), "has_users": False, "pair_model": None})
    require_federable(federated)
    return federated


class SamplesByUser:
    """All rows of a window, and which of them are whose. Raises DataError on a log without users."""

    def __init__(self, examples: ExampleSet) -> None:
        self._whole = next(examples.batches(examples.rows))
        users = self._whole.user.numpy()
        if not users.any():
            raise DataError(f"{examples.folder}: the log has no users, so there are no clients; set log.user_id")
        order = np.argsort(users, kind="stable")
        starts = np.flatnonzero(np.append(True, np.diff(users[order]) != 0))
        rows = np.split(order, starts[1:])
        self._rows = {int(users[mine[0]]): mine for mine in rows}

    @property
    def users(self) -> list[int]:
        """Sorted ids."""
        return sorted(self._rows)

    def of(self, user: int, latest: int | None = None) -> Batch:
        """A user's rows in file order, none for a stranger; the last `latest` of them where it is given."""
        rows = self._rows.get(user, np.empty(0, dtype=np.int64))
        return self._whole.take(torch.from_numpy(rows if latest is None else rows[-latest:]))


def prepare(config: Config, out: Artifacts, folder: Path, memory: Path | None = None) -> int:
    """Writes public files and one folder per client; returns how many clients there are.

    The population is a seeded choice where it is bounded; a client keeps its latest `max_samples` rows to train on,
    and of the later ones as many. `memory`: where users keep what they answered and spent from run to run; None: in
    the folder, for runs of this one alone. Raises ConfigError where negatives were not drawn every item alike.
    """
    negatives = config.label.negatives
    for name, value in (("popularity", negatives.popularity), ("candidates", negatives.candidates)):
        if value > 0:
            raise ConfigError(f"label.negatives.{name} is {value:g}, and no client knows how often an item was drawn "
                              "by it; set it to 0 for federated training")
    spec = federated_spec(config, FeatureSpec.read(out.encoding))
    samples = SamplesByUser(ExampleSet(out.examples("train"), spec))
    later = SamplesByUser(ExampleSet(out.examples("validation"), spec))
    users = samples.users
    limit = config.federated.population or len(users)
    chosen = sorted(random.Random(config.seed).sample(users, min(limit, len(users))))
    if len(chosen) < config.federated.clients:
        raise ConfigError(
            f"federated.clients is {config.federated.clients}, the log has {len(chosen)} users; take fewer"
        )
    _clear_other_clients(folder, config, spec, chosen)
    client_files.write_public(folder, config, spec, vocabulary.read_all(out.encoding))
    for number, user in enumerate(chosen):
        client_files.write_client(folder, number, samples.of(user, config.federated.max_samples))
        client_files.write_client(folder, number, later.of(user, config.federated.max_samples), client_files.LATER)
        client_files.link_memory(folder, number, (memory or folder / "memory") / f"{user % 2**64:016x}")
    client_files.write_identities(folder)
    _clear_other_runs(folder, config, _rows_digest(folder, out, spec))
    return len(chosen)


def _clear_other_clients(folder: Path, config: Config, spec: FeatureSpec, users: list[int]) -> None:
    """Rows and identities stay unless the client of that number or what its rows are is another, first answers whatever
    changes."""
    folder.mkdir(parents=True, exist_ok=True)
    if not _same(folder / CLIENTS, [spec.model_dump(mode="json"), config.federated.public_up_to, users]):
        shutil.rmtree(folder / "clients", ignore_errors=True)


def _rows_digest(folder: Path, out: Artifacts, spec: FeatureSpec) -> str:
    """Hash of the rows that training and its figures read: those of the clients, and the windows they are measured on.
    Clients and windows have been written."""
    digest = hashlib.sha256()
    for number in range(client_files.count(folder)):
        for file in (client_files.SAMPLES, client_files.LATER):
            digest.update(bundle.digest(client_files.client(folder, number) / file).encode())
    for window in MEASURED:
        for batch in ExampleSet(out.examples(window), spec).batches(BUFFER_ROWS):
            for array in client_files.arrays(batch).values():
                digest.update(array.tobytes())
    return digest.hexdigest()


def _clear_other_runs(folder: Path, config: Config, rows: str) -> None:
    """What was trained goes when anything that training depends on changes; `rows`: the hash of those it reads. How
    many rounds there are and which settings run may change between two starts."""
    free = {"settings": True, "served": True, "rounds": True, "evaluate_every": True, "timeout": True,
            "enough": True, "personal_steps": True, "personal_rate": True, "personal_pull": True,
            "overrides": {"__all__": {"rounds"}}}
    federated = config.federated.model_dump(mode="json", exclude=free)  # type: ignore[arg-type]
    if not _same(folder / TRAINING, [federated, config.train.model_dump(mode="json"), config.seed, rows,
                                     (folder / CLIENTS).read_text(encoding="utf-8")]):
        shutil.rmtree(folder / "runs", ignore_errors=True)
        for gradient in folder.glob("clients/*/gradient-*"):
            gradient.unlink()


def _same(path: Path, depends_on: object) -> bool:
    """Whether the file holds the fingerprint of this; afterwards it does."""
    now = hashlib.sha256(json.dumps(depends_on, sort_keys=True).encode()).hexdigest()
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    path.write_text(now, encoding="utf-8")
    return before == now


def pooled(folder: Path) -> Batch:
    """All clients' rows in one batch, for central training alone."""
    parts = [client_files.read_client(folder, number) for number in range(client_files.count(folder))]
    blocks = [
        FeatureBlock(torch.cat([block.ids for block in side]), torch.cat([block.dense for block in side]))
        for side in ([part.request for part in parts], [part.candidate for part in parts])
    ]
    columns = [torch.cat(column) for column in zip(*(part[2:6] for part in parts), strict=True)]
    return Batch(*blocks, *columns)  # type: ignore[arg-type]
