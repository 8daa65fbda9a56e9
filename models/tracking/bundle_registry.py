"""Bundles as versions of one MLflow model, with signature, lineage and the aliases champion, challenger and shadow.

    champion     what is served; `promote` moves it, `rollback` puts it back on the version that it replaced
    challenger   the newest version that wants to become champion
    shadow       a version that is served beside the champion and shown to nobody

A model's artefact is a folder with MLmodel (flavour `sluice`, signature) and `bundle/`. Registering is idempotent by
the bundle's content hash. The store is MLFLOW_TRACKING_URI's, or else one given; MLflow is imported by the first use.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import tempfile
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

from contracts.bundle import bundle
from contracts.bundle.bundle import Manifest
from contracts.bundle.file_pieces import copy_folder
from contracts.errors import BundleError, ConfigError
from contracts.shown import short, shown, without_passwords
from models.tracking.registered_model import BUNDLE, VERSION, write_model
from models.tracking.tracking import URI, with_database

CHAMPION, CHALLENGER = "champion", "challenger"
HASH, REPLACED, ROLLED_BACK = "content_hash", "replaced", "rolled_back"
log = logging.getLogger("sluice.registry")
SCHEME, LOCAL = "models:/", ("", "file")
PATH_PART = re.compile(r"[A-Za-z0-9_-]{1,200}")  # as contracts/config/config.py lets bundles be called
DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class RegisteredBundle:
    """`number` counts the versions of one name from 1, as text."""

    name: str
    number: str
    source: str
    tags: Mapping[str, str] = field(default_factory=dict)

    @property
    def version(self) -> str:
        return self.tags[VERSION]

    @property
    def path(self) -> Path:
        """NAME/VERSION, a place below a cache. Raises BundleError where the registry's words would lead elsewhere."""
        for what, part in (("name", self.name), ("tag " + VERSION, self.tags.get(VERSION, ""))):
            if not PATH_PART.fullmatch(part):
                raise BundleError(f"the {what} of version {short(self.number)} in the registry is {shown(part)}, which "
                                  "is no bundle's: letters, digits, _ and - alone; register the bundle again")
        if not DIGEST.fullmatch(self.tags.get(HASH, "")):
            raise BundleError(f"the tag {HASH} of version {short(self.number)} in the registry is no SHA-256; register "
                              "the bundle again")
        return Path(self.name, self.version)


@dataclass(frozen=True)
class Lineage:
    """What a version was made from: [start, end) of the data as ISO 8601, and the commit of the code."""

    data_start: str = ""
    data_end: str = ""
    commit: str = "unknown"


def registry_uri(given: str | None, out: Path | None = None) -> str:
    """The given one, MLFLOW_TRACKING_URI, or the data base that a run leaves in its output folder.

    Raises ConfigError when there is none of them.
    """
    found = given or os.environ.get(URI)
    if found:
        return found
    if out is None:
        raise ConfigError(f"no model registry: give --registry URI or set {URI}, as in sqlite:///OUT/mlflow.db")
    return f"sqlite:///{out.resolve() / 'mlflow.db'}"


def parse_reference(reference: str) -> tuple[str, str]:
    """ "models:/NAME@ALIAS" -> (NAME, ALIAS). Raises ConfigError."""
    name, at, alias = reference.removeprefix(SCHEME).partition("@")
    if not (reference.startswith(SCHEME) and at and PATH_PART.fullmatch(name) and PATH_PART.fullmatch(alias)):
        raise ConfigError(f"{shown(reference)} names no bundle in a registry; write {SCHEME}NAME@ALIAS, as in "
                          f"{SCHEME}marketplace@{CHAMPION}")
    return name, alias


class BundleRegistry:
    """Raises ConfigError when MLflow is not installed."""

    def __init__(self, uri: str) -> None:
        os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
        os.environ.setdefault("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false")
        try:
            from mlflow.tracking import MlflowClient
        except ImportError:
            raise ConfigError("the model registry is MLflow's; install the extra `tracking`") from None
        for name in ("mlflow", "alembic"):  # after the import, which sets them to INFO
            logging.getLogger(name).setLevel(logging.WARNING)
        self.uri = uri
        self._client = MlflowClient(tracking_uri=with_database(uri), registry_uri=uri)

    @property
    def address(self) -> str:
        """For messages and summaries: the store's, without a password."""
        return without_passwords(self.uri)

    def register(self, folder: Path, lineage: Lineage, alias: str = CHALLENGER) -> RegisteredBundle:
        """Copies a verified bundle into the store, unless it is there already, and points `alias` at it.

        Raises ChecksumError and BundleError for a bundle that is none.
        """
        manifest = bundle.verify(folder)
        found = self.by_hash(manifest.name, manifest.content_hash) or self._create(folder, manifest, lineage)
        self.point(found, alias)
        return found

    def by_alias(self, name: str, alias: str) -> RegisteredBundle | None:
        from mlflow.exceptions import MlflowException

        try:
            return _registered(self._client.get_model_version_by_alias(name, alias))
        except MlflowException as error:
            if error.error_code in ("RESOURCE_DOES_NOT_EXIST", "INVALID_PARAMETER_VALUE"):
                return None
            raise

    def by_hash(self, name: str, content_hash: str) -> RegisteredBundle | None:
        """The oldest version of this content."""
        found = [version for version in self._client.search_model_versions(f"name = '{name}'")
                 if version.tags.get(HASH) == content_hash]
        return _registered(min(found, key=lambda version: int(version.version))) if found else None

    def by_number(self, name: str, number: str) -> RegisteredBundle:
        return _registered(self._client.get_model_version(name, number))

    def all_versions(self) -> list[tuple[RegisteredBundle, list[str]]]:
        """Every version of every bundle with its aliases, the newest first."""
        made = sorted(self._client.search_model_versions(""), key=lambda one: -one.creation_timestamp)
        found = [_registered(version) for version in made if HASH in version.tags]
        aliases = {model.name: dict(model.aliases) for model in self._client.search_registered_models()}
        return [(one, sorted(alias for alias, number in aliases.get(one.name, {}).items() if str(number) == one.number))
                for one in found]

    def point(self, version: RegisteredBundle, alias: str) -> None:
        self._client.set_registered_model_alias(version.name, alias, version.number)

    def tag(self, version: RegisteredBundle, **tags: str) -> None:
        for key, value in tags.items():
            self._client.set_model_version_tag(version.name, version.number, key, value)

    def promote(self, version: RegisteredBundle) -> None:
        """Makes it champion; it remembers which version it replaced. Nothing happens to one that is."""
        old = self.by_alias(version.name, CHAMPION)
        if old and old.number == version.number:
            return
        self.tag(version, **{REPLACED: old.number if old else ""}, promoted=datetime.now(UTC).isoformat())
        self.point(version, CHAMPION)

    def rollback(self, name: str) -> tuple[RegisteredBundle, RegisteredBundle]:
        """Points champion at the version that the present one replaced; returns (version left, version restored).

        Raises BundleError when there is nothing to go back to.
        """
        left = self.by_alias(name, CHAMPION)
        if left is None:
            raise BundleError(f"{name!r} has no champion in {self.address}; `sluice promote` makes one")
        if not left.tags.get(REPLACED):
            raise BundleError(f"version {left.number} of {name!r} replaced none; there is nothing to roll back to")
        restored = self.by_number(name, left.tags[REPLACED])
        self.tag(left, **{ROLLED_BACK: datetime.now(UTC).isoformat()})
        self.point(restored, CHAMPION)
        return left, restored

    def fetch(self, version: RegisteredBundle, cache: Path) -> Path:
        """The bundle's folder, copied from the store into `cache`; what lies there is taken where it is whole and what
        was registered. Raises ChecksumError, BundleError."""
        target = cache / version.path
        if _holds(target, version.tags[HASH]):
            return target
        shutil.rmtree(target, ignore_errors=True)
        target.parent.mkdir(parents=True, exist_ok=True)
        aside = target.with_name(f".{target.name}.{uuid.uuid4().hex[:8]}")
        try:
            self._download(version, aside)
            if bundle.verify(aside / BUNDLE).content_hash != version.tags[HASH]:
                raise BundleError(f"version {version.number} of {version.name!r} holds another bundle than registered")
            (aside / BUNDLE).rename(target)
        finally:
            shutil.rmtree(aside, ignore_errors=True)
        return target

    def _download(self, version: RegisteredBundle, target: Path) -> None:
        from mlflow.artifacts import download_artifacts
        from mlflow.exceptions import MlflowException
        from mlflow.utils.file_utils import local_file_uri_to_path

        target.mkdir()
        try:
            if urlparse(version.source).scheme in LOCAL:
                copy_folder(Path(local_file_uri_to_path(version.source)) / BUNDLE, target / BUNDLE)
                return
            found = Path(download_artifacts(artifact_uri=f"{version.source}/{BUNDLE}", dst_path=str(target),
                                            tracking_uri=self.uri))
        except (MlflowException, OSError) as error:
            raise BundleError(f"version {version.number} of {version.name!r} cannot be read from {version.source}: "
                              f"{error}") from error
        if found != target / BUNDLE:
            found.rename(target / BUNDLE)

    def _create(self, folder: Path, manifest: Manifest, lineage: Lineage) -> RegisteredBundle:
        self._ensure_model(manifest.name)
        run = self._client.create_run(self._experiment(manifest.name), run_name=f"register {manifest.version}")
        with tempfile.TemporaryDirectory() as aside:
            write_model(Path(aside), folder, manifest)
            self._client.log_artifacts(run.info.run_id, aside, "model")
        self._client.set_terminated(run.info.run_id, "FINISHED")
        return _registered(self._client.create_model_version(
            manifest.name, f"{run.info.artifact_uri}/model", run.info.run_id, tags=_tags(manifest, lineage),
            description=f"bundle {manifest.version}, data {lineage.data_start} to {lineage.data_end}",
        ))

    def _ensure_model(self, name: str) -> None:
        from mlflow.exceptions import MlflowException

        try:
            self._client.create_registered_model(name)
        except MlflowException as error:
            if error.error_code != "RESOURCE_ALREADY_EXISTS":
                raise

    def _experiment(self, name: str) -> str:
        found = self._client.get_experiment_by_name(name)
        if found:
            return found.experiment_id
        local = self.uri.startswith("sqlite:///")
        place = (Path(self.uri.removeprefix("sqlite:///")).parent / "mlartifacts").resolve().as_uri() if local else None
        return self._client.create_experiment(name, place)


def _holds(folder: Path, content_hash: str) -> bool:
    """Does a whole bundle of this content lie there?"""
    if not folder.exists():
        return False
    try:
        return bundle.verify(folder).content_hash == content_hash
    except BundleError as error:
        log.warning("what lay in the cache is fetched again: %s", error)
        return False


def _registered(version: Any) -> RegisteredBundle:
    return RegisteredBundle(version.name, str(version.version), version.source, dict(version.tags))


def _tags(manifest: Manifest, lineage: Lineage) -> dict[str, str]:
    served = manifest.metrics.models.get(manifest.metrics.ranker) if manifest.metrics else None
    auc = served.auc if served else None
    return {
        HASH: manifest.content_hash, VERSION: manifest.version, "created": manifest.created.isoformat(),
        "schema_version": str(manifest.schema_version), "parents": ",".join(manifest.parents),
        "data_start": lineage.data_start, "data_end": lineage.data_end, "commit": lineage.commit,
        "ranker": manifest.ranker or "", **({} if auc is None else {"test_auc": f"{auc:.6f}"}),
    }
