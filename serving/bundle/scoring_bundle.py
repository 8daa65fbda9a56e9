"""A bundle of a table without items: it scores explicit rows and ranks nothing; verified as the others are.

    feature_spec.json, vocabularies/, settings.json
    rank/       weights.safetensors, calibration.safetensors
    parity/     rows.parquet

Where there are items, this is the part of a bundle that scores; see serving/bundle/loaded_bundle.py for the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Self

from torch import nn

from contracts.artifacts import CALIBRATION, WEIGHTS
from contracts.bundle import bundle
from contracts.bundle.bundle import Manifest
from contracts.errors import BundleError
from contracts.features import vocabulary
from contracts.features.encoding import Encoder
from contracts.features.feature_spec import FeatureSpec
from models.evaluation.calibration import Calibration
from serving.bundle import parity
from serving.bundle.bundle_settings import BundleSettings
from serving.bundle.networks import load_ranker

RANK, PARITY = "rank", "parity"


@dataclass(frozen=True, eq=False, kw_only=True)
class ScoringBundle:
    """What scores rows: encoder, ranker, calibration. `parity` is None when not checked."""

    manifest: Manifest
    spec: FeatureSpec
    encoder: Encoder
    settings: BundleSettings
    ranker: nn.Module
    calibration: Calibration
    parity: parity.Comparison | None

    @property
    def version(self) -> str:
        return self.manifest.version

    @classmethod
    def load(cls, folder: Path, check_parity: bool = True, compared: bool = False) -> Self:
        """`compared`: its files have just been, with their checksums. Raises ChecksumError, BundleVersionError,
        BundleError or ParityError."""
        manifest = bundle.read_manifest(folder) if compared else bundle.verify(folder)
        try:
            return cls.read(folder, manifest, check_parity)
        except FileNotFoundError as error:
            raise BundleError(f"the bundle {folder} lacks a file ({error}); assemble it again") from None

    @classmethod
    def read(cls, folder: Path, manifest: Manifest, check_parity: bool) -> Self:
        """Of a folder whose checksums hold. Raises ParityError, FileNotFoundError."""
        settings, spec = BundleSettings.read(folder), FeatureSpec.read(folder)
        encoder = Encoder(spec, vocabulary.read_all(folder))
        ranker = load_ranker(folder / RANK / WEIGHTS, settings.ranker, spec, settings.train)
        calibration = load_calibration(folder / RANK)
        compared = None
        if check_parity:
            compared = parity.check(folder / PARITY, encoder, ranker, calibration, parity.tolerance(settings.train))
        return cls(manifest=manifest, spec=spec, encoder=encoder, settings=settings, ranker=ranker,
                   calibration=calibration, parity=compared)


def load_calibration(folder: Path) -> Calibration:
    return Calibration.from_arrays(bundle.load_weights(folder / CALIBRATION))
