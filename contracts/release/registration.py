"""What `sluice register` and `sluice rollback` did in the model registry."""

from __future__ import annotations

from pydantic import ConfigDict

from contracts.summaries.summary import Record, Summary

FOLDER = "registration"


class VersionTags(Record):
    """Tags of a registered version that others rely on; a registry may hold more of them."""

    model_config = ConfigDict(frozen=True, extra="allow")

    bundle_version: str
    content_hash: str


class RegistrationSummary(Summary):
    """OUT/registration: the run's bundle as version `number` (counted from 1, as text) of the model `name`, with
    `alias` pointing at it; `registry` is MLflow's address."""

    name: str
    number: str
    alias: str
    registry: str
    tags: VersionTags


class RollbackResult(Record):
    """`champion` is champion afterwards, as version `number`; `left` was before. Not `rolled_back`: another one than
    the version to leave was champion already, and nothing was changed. A folder's bundle has no `number`."""

    rolled_back: bool
    champion: str
    number: str | None = None
    left: str | None = None
