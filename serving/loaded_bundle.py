"""A bundle in memory: verified, memory-mapped, its networks rebuilt; refused when it scores otherwise than in training.

    feature_spec.json, vocabularies/, settings.json
    tables/     users_{keys,ids,dense}.npy, users_recent.npy, items_{keys,ids,dense}.npy, items_bid.npy,
                popularity.npy, filter_NAME_{codes,values}.npy
    retrieval/  towers.safetensors, vectors.npy, index.faiss, neighbours.npy
    prerank/    weights.safetensors, calibration.safetensors
    rank/       weights.safetensors, calibration.safetensors
    parity/     rows.parquet
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from torch import nn

from contracts import bundle, vocabulary
from contracts.bundle import Manifest, load_array
from contracts.encoding import Encoder
from contracts.errors import BundleError
from contracts.feature_spec import FeatureSpec
from models.calibration import Calibration
from models.pre_ranker import PreRanker
from models.two_tower import TwoTower
from serving import item_index, parity
from serving.bundle_settings import BundleSettings
from serving.filter_column import FilterColumn
from serving.item_index import ItemIndex
from serving.networks import load_pre_ranker, load_ranker, load_towers
from serving.side_table import SideTable

TABLES, RETRIEVAL, PRERANK, RANK, PARITY = "tables", "retrieval", "prerank", "rank", "parity"


@dataclass(frozen=True, eq=False)
class LoadedBundle:
    """`item_vectors` [I, d] are the item tower's, `recent` [U, R] item rows padded right with -1, `popularity` [I] item
    rows, most popular first, `neighbours` [I, M] item rows padded right with -1; `parity` is None when not checked.
    """

    manifest: Manifest
    spec: FeatureSpec
    encoder: Encoder
    settings: BundleSettings
    users: SideTable
    items: SideTable
    bids: np.ndarray | None
    filters: dict[str, FilterColumn]
    recent: np.ndarray
    towers: TwoTower
    item_vectors: np.ndarray
    index: ItemIndex
    neighbours: np.ndarray
    popularity: np.ndarray
    pre_ranker: PreRanker
    prerank_calibration: Calibration
    ranker: nn.Module
    calibration: Calibration
    parity: parity.Comparison | None

    @property
    def version(self) -> str:
        return self.manifest.version

    @classmethod
    def load(cls, folder: Path, check_parity: bool = True) -> LoadedBundle:
        """Raises ChecksumError, BundleVersionError, BundleError or ParityError; nothing is served then."""
        manifest = bundle.verify(folder)
        try:
            return cls._read(folder, manifest, check_parity)
        except FileNotFoundError as error:
            raise BundleError(f"the bundle {folder} lacks a file ({error}); assemble it again") from None

    @classmethod
    def _read(cls, folder: Path, manifest: Manifest, check_parity: bool) -> LoadedBundle:
        settings, spec = BundleSettings.read(folder), FeatureSpec.read(folder)
        encoder = Encoder(spec, vocabulary.read_all(folder))
        tables, retrieval, train = folder / TABLES, folder / RETRIEVAL, settings.train
        vectors = load_array(retrieval / "vectors.npy")
        ranker = load_ranker(folder / RANK / "weights.safetensors", settings.ranker, spec, train)
        calibration = _calibration(folder / RANK)
        compared = None
        if check_parity:
            compared = parity.check(folder / PARITY, encoder, ranker, calibration, parity.tolerance(train))
        return cls(
            manifest=manifest, spec=spec, encoder=encoder, settings=settings,
            users=SideTable.load(tables, "users"), items=SideTable.load(tables, "items"),
            bids=load_array(tables / "items_bid.npy") if spec.has_bid else None,
            filters={name: FilterColumn.load(tables, name) for name in settings.retrieve.filter_fields},
            recent=load_array(tables / "users_recent.npy"),
            towers=load_towers(retrieval / "towers.safetensors", spec, train),
            item_vectors=vectors[:, : train.tower_dim],
            index=item_index.load(retrieval / "index.faiss", vectors, settings.retrieve),
            neighbours=load_array(retrieval / "neighbours.npy"), popularity=load_array(tables / "popularity.npy"),
            pre_ranker=load_pre_ranker(folder / PRERANK / "weights.safetensors", train, settings.prerank),
            prerank_calibration=_calibration(folder / PRERANK),
            ranker=ranker, calibration=calibration, parity=compared,
        )


def _calibration(folder: Path) -> Calibration:
    return Calibration.from_arrays(bundle.load_weights(folder / "calibration.safetensors"))
