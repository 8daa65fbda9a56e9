"""The bundle that an alias of the model registry names, copied into a folder of this server's own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from contracts.errors import BundleError
from models.tracking.bundle_registry import BundleRegistry, RegisteredBundle


class RegistrySource:
    """`cache` holds the folders of fetched bundles. The registry is opened when it is first asked, and again as long as
    that fails."""

    compares = True

    def __init__(self, open_registry: Callable[[], BundleRegistry], name: str, alias: str, cache: Path) -> None:
        self._open, self._name, self._alias, self._cache = open_registry, name, alias, cache
        self._registry: BundleRegistry | None = None
        self._known: dict[str, RegisteredBundle] = {}

    def latest(self) -> str | None:
        """The version that the alias names now; None where it names nothing."""
        self._registry = self._registry or self._open()
        registered = self._registry.by_alias(self._name, self._alias)
        if registered is None:
            return None
        self._known = {registered.version: registered}
        return registered.version

    def fetch(self, version: str) -> Path:
        """The folder of the version that `latest` named.

        Raises BundleError for another one, or when the store lacks it; ChecksumError when it is not what was
        registered.
        """
        if version not in self._known or self._registry is None:
            raise BundleError(f"{version} is not what {self._name}@{self._alias} names")
        return self._registry.fetch(self._known[version], self._cache)
