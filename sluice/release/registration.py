"""`sluice register`, `promote` and `rollback`: a run's bundle into the registry, past the gate, and back."""

from __future__ import annotations

from pathlib import Path

from contracts import commit as code
from contracts.artifacts import Artifacts
from contracts.bundle.bundle import read_manifest
from contracts.config.days import Gate
from contracts.errors import BundleError, GateRefused
from contracts.release import gate, registration
from contracts.release.gate import GateSummary, GateVerdict, Promotion
from contracts.release.registration import RegistrationSummary, RollbackResult, VersionTags
from contracts.summaries import summary
from contracts.windows import TimedWindows
from contracts.windows import read as read_windows
from models.tracking.bundle_registry import (
    CHAMPION,
    ROLLED_BACK,
    BundleRegistry,
    Lineage,
    RegisteredBundle,
    registry_uri,
)


def register(folder: Path, registry: str | None, alias: str, commit: str | None) -> RegistrationSummary:
    """Registers OUT/bundle and writes OUT/registration. A second run of the same content changes nothing."""
    out = Artifacts(folder)
    store = BundleRegistry(registry_uri(registry, folder))
    version = store.register(out.bundle, lineage(out, commit or code.present_commit() or "unknown"), alias)
    result = RegistrationSummary(
        name=version.name, number=version.number, alias=alias, registry=store.address, tags=VersionTags(**version.tags))
    summary.write(folder / registration.FOLDER, result)
    return result


def lineage(out: Artifacts, commit: str) -> Lineage:
    """The data interval spans all windows of the run; it is empty where windows are no times."""
    windows = read_windows(out.windows)
    if not isinstance(windows, TimedWindows):
        return Lineage(commit=commit)
    starts, ends = zip(*windows.spans.values(), strict=True)
    return Lineage(min(starts).isoformat(), max(ends).isoformat(), commit)


def promote(folder: Path, registry: str | None, force: bool) -> Promotion:
    """Evaluates OUT/bundle, registered before, against the champion, and makes it champion.

    Raises GateRefused with the reasons, which OUT/gate also holds; `force` promotes in spite of them. BundleError when
    the bundle is not registered.
    """
    out = Artifacts(folder)
    store = BundleRegistry(registry_uri(registry, folder))
    manifest = read_manifest(out.bundle)
    version = store.by_hash(manifest.name, manifest.content_hash)
    if version is None:
        raise BundleError(f"{manifest.version} is not registered in {store.address}; run `sluice register {folder}` "
                          "first")
    champion = store.by_alias(version.name, CHAMPION)
    if champion and champion.number == version.number:
        return Promotion(challenger=version.version, champion=version.version, promoted=False, number=version.number)
    verdict = _verdict(out, store, version, champion)
    result = GateSummary(**dict(verdict), forced=force)
    summary.write(folder / gate.FOLDER, result)
    if result.reasons and not force:
        store.tag(version, refused="; ".join(result.reasons))
        raise GateRefused(
            f"{version.version} stays challenger: " + "; ".join(result.reasons)
            + ". Look at the data and the training of the day, or promote in spite of it with --force"
        )
    store.promote(version)
    return Promotion(**dict(result), promoted=True, number=version.number)


def _verdict(
    out: Artifacts, store: BundleRegistry, version: RegisteredBundle, champion: RegisteredBundle | None
) -> GateVerdict:
    """A version that was rolled back is refused unseen."""
    from sluice.release.gate import evaluate_challenger

    if version.tags.get(ROLLED_BACK):
        return GateVerdict(challenger=version.version, reasons=(
            f"it was rolled back on {version.tags[ROLLED_BACK]}, and nothing about it has changed since",))
    config = read_manifest(out.bundle).settings
    limits, seed = (config.gate, config.seed) if config else (Gate(), 0)
    before = store.fetch(champion, out.out / "registry_cache") if champion else None
    return evaluate_challenger(out, out.bundle, before, limits, seed)


def rollback(name: str, registry: str | None, only: str | None) -> RollbackResult:
    """`only` names the bundle version to leave: where another is champion by now, nothing happens.

    Raises BundleError when there is nothing to go back to.
    """
    store = BundleRegistry(registry_uri(registry))
    champion = store.by_alias(name, CHAMPION)
    if only and champion and champion.version != only:
        return RollbackResult(rolled_back=False, champion=champion.version, number=champion.number)
    left, restored = store.rollback(name)
    return RollbackResult(rolled_back=True, left=left.version, champion=restored.version, number=restored.number)
