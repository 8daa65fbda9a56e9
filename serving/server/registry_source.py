"""The bundle that an alias of the model registry names, copied into a folder of this server's own."""

from __future__ import annotations

from pathlib import Path

from contracts.errors import BundleError
from models.tracking.bundle_registry import BundleRegistry, RegisteredBundle


class RegistrySource:
    def __init__(self, registry: BundleRegistry, name: str, alias: str, cache: Path) -> None:
        self._registry, self._name, self._alias, self._cache = registry, name, alias, cache
        self._known: dict[str, RegisteredBundle] = {}

    def latest(self) -> str | None:
        found = self._registry.by_alias(self._name, self._alias)
        if found is None:
            return None
        self._known = {found.version: found}
        return found.version

    def fetch(self, version: str) -> Path:
        """Raises BundleError when the store lacks it, ChecksumError when it is not what was registered."""
        if version not in self._known:
            raise BundleError(f"{version} is not what {self._name}@{self._alias} names")
        return self._registry.fetch(self._known[version], self._cache)
