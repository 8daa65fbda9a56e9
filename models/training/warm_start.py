"""Training that starts from the weights of an older bundle.

    embeddings      a row goes over by what its id means (models/training/id_maps.py); new values stay as initialised
    input layers    a column goes over by the name of its input; columns of new fields stay as initialised
    attention       as it is, by the name of the history
    other layers    as they are, where the shape is the same
    not carried     what the new training window sets (priors of popularity, log frequencies, scales), pair rates,
                    which are pre-trained anew, and layers of another shape

Where a layer is as wide as two different things, it starts anew rather than mixed up. Where vectors or hidden layers do
not go over, or there are fewer of them, or the MLP reads the inputs in one network and crosses in the other, nothing
does: what is left of a network without them is no start, and a cold one has batch normalisation.

The old weights are the file's own pages: of several processes each reads the rows that become its own, and none holds a
table that is not its own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from contracts.artifacts import WEIGHTS
from contracts.bundle import bundle
from contracts.bundle.bundle import Manifest
from contracts.config.config import Config
from contracts.config.training import Train
from contracts.errors import BundleError
from contracts.features import vocabulary
from contracts.features.feature_spec import FeatureSpec, IdSlot
from contracts.summaries.train import WarmStartFigures
from models.layers import batch_norm
from models.layers.embedding import FusedEmbedding
from models.layers.own_rows import undrawn
from models.training import checkpoint
from models.training.id_maps import NEW, Vocabularies, id_maps
from models.training.input_columns import input_columns, per_field

PAIR_RATES = "embedding.pair_rates."
EMBEDDING, PRODUCTS = "embedding.weight", "embedding.products.weight"
OF_HISTORIES = ("attention", "context")  # lists of modules
PIECE = 1 << 16  # rows of a table that go over at once
Build = Callable[[FeatureSpec, Config], nn.Module]


@dataclass(frozen=True)
class Parent:
    """A bundle as the start of training."""

    folder: Path
    manifest: Manifest
    spec: FeatureSpec
    vocabularies: Vocabularies
    config: Config

    @classmethod
    def read(cls, folder: Path) -> Parent:
        """Raises BundleError (or a kind of it) when the folder is no whole bundle, or one without its settings."""
        manifest = bundle.verify(folder)
        if manifest.settings is None:
            raise BundleError(f"{folder} does not say how it was trained; start with --cold, or from another bundle")
        return cls(folder, manifest, FeatureSpec.read(folder), vocabulary.read_all(folder), manifest.settings)

    def weights(self, name: str) -> Path | None:
        """Of the ranker that it serves, the two towers and the towers' pre-ranker; None of anything else."""
        kept = {self.manifest.ranker: f"rank/{WEIGHTS}", "two_tower": "retrieval/towers.safetensors"}
        if self.config.prerank_kind == "towers":
            kept["pre_ranker"] = f"prerank/{WEIGHTS}"
        path = self.folder / kept[name] if name in kept else None
        return path if path and path.exists() else None


@dataclass(frozen=True)
class WarmStart:
    """What a network of `spec` takes over from its parent; called once the network is prepared."""

    parent: Parent
    spec: FeatureSpec
    vocabularies: Vocabularies
    settings: Train

    @torch.no_grad()
    def __call__(self, network: nn.Module, name: str, build: Build) -> WarmStartFigures | None:
        """Changes the weights of `network` in place, all or, with the figures' `cold`, none; None where the parent
        holds no such model."""
        path = self.parent.weights(name)
        if path is None:
            return None
        with torch.random.fork_rng(devices=[]), undrawn():
            old = build(self.parent.spec, self.parent.config)
        checkpoint.load(old, path, mapped=True)
        rows = self._rows(network, old)
        own = {key: places[network.embedding.own] for key, places in rows.items()}  # type: ignore[union-attr,index]
        columns = input_columns(old, self.parent.spec), input_columns(network, self.spec)
        new = {key: parameter for key, parameter in network.named_parameters() if not key.startswith(PAIR_RATES)}
        stored = dict(old.named_parameters())
        before = {key: stored[place] for key in new if (place := _old_key(key, old, network)) in stored}
        axes = {key: self._axes(network, key, before.get(key), parameter, own, columns)
                for key, parameter in new.items()}
        anew, kept = [key for key, found in axes.items() if found is None], rows.get(EMBEDDING, np.empty(0))
        figures = WarmStartFigures(parent=self.parent.manifest.version, rows=len(kept),
                                   rows_carried=int((kept != NEW).sum()), anew=tuple(anew))
        dropped = sorted(stored.keys() - {_old_key(key, old, network) for key in new})
        lost = [*_lost(network, anew, before, columns[0]), *_lost(old, dropped, {}, columns[1])]
        unlike = _unlike(old, network) or (_shapes(lost, stored, new) if lost else None)
        if unlike is not None:
            what, there, here = unlike
            return figures.model_copy(update={"rows_carried": 0, "anew": tuple(new), "cold": (
                f"{name} starts cold: {what} of {figures.parent} cannot be carried, as it is {there} there and {here} "
                "here.")})
        for key, found in axes.items():
            if found is not None:
                _copy(before[key], new[key], found)
        return figures

    def _axes(
        self, network: nn.Module, key: str, old: Tensor | None, new: Tensor, rows: dict[str, np.ndarray],
        columns: tuple[dict[str, list[str]], dict[str, list[str]]],
    ) -> list[np.ndarray] | None:
        """For each axis the old place of each new one; None where nothing can be carried."""
        if old is None or old.ndim != new.ndim:
            return None
        named, all_of_them = per_field(network)
        sizes = [*zip(old.shape, new.shape, strict=True)]
        if key in rows:
            axes = [rows[key], *(_by_place(*size) for size in sizes[1:])]
        elif key in named or (all_of_them and not key.startswith("embedding.")):
            axes = [_named(kind, *size, *columns)
                    for kind, size in zip(named.get(key, ("",) * new.ndim), sizes, strict=True)]
        elif key.startswith(_stacks(network)):
            axes = [_by_place(*sizes[0]), *(_inputs(key.rpartition(".")[2], *size, *columns) for size in sizes[1:])]
        elif key.partition(".")[0] in OF_HISTORIES:
            axes = [_by_place(*size) for size in sizes]
        else:
            s = self.settings
            widths = {1, s.embedding_dim, s.cross_rank, s.tower_dim, *s.hidden, *s.tower_hidden}
            axes = [_guessed(*size, *columns, widths) for size in sizes]
        return None if any(axis is None for axis in axes) else axes  # type: ignore[return-value]

    def _rows(self, network: nn.Module, old: nn.Module) -> dict[str, np.ndarray]:
        """Parameter -> the old row of each new row."""
        new_table, old_table = getattr(network, "embedding", None), getattr(old, "embedding", None)
        if not isinstance(new_table, FusedEmbedding) or not isinstance(old_table, FusedEmbedding):
            return {}
        maps = id_maps(self.parent.spec, self.parent.vocabularies, self.spec, self.vocabularies)
        old_rows = {EMBEDDING: _embedding_rows(new_table, old_table, maps)}
        if new_table.products is not None and old_table.products is not None:
            old_rows[PRODUCTS] = _product_rows(self.spec, self.parent.spec, maps)
        return old_rows


def _old_key(key: str, old: nn.Module, new: nn.Module) -> str:
    """What the parent calls a parameter: where modules stand in a list, one for each history, by the history's name; ""
    where it has none of that name."""
    before, now = ([pair.name for pair, _ in getattr(network, "pairs", ())] for network in (old, new))
    module, place, *rest = [*key.split(".", 2), ""]
    if module not in OF_HISTORIES or not now:
        return key
    name = now[int(place)]
    return ".".join((module, str(before.index(name)), *rest[:1])) if name in before else ""


def _by_place(old: int, new: int) -> np.ndarray | None:
    return np.arange(new) if old == new else None


def _named(
    kind: str, old: int, new: int, before: dict[str, list[str]], now: dict[str, list[str]]
) -> np.ndarray | None:
    """Old places of an axis whose layout is known; "": one that has nothing to do with fields."""
    if not kind:
        return _by_place(old, new)
    fits = (len(before.get(kind, ())), len(now.get(kind, ()))) == (old, new)
    return _places(before[kind], now[kind]) if fits else None


def _inputs(
    kind: str, old: int, new: int, before: dict[str, list[str]], now: dict[str, list[str]]
) -> np.ndarray | None:
    """Of a stack's layer: a block, where it is the first one and reads one, else another's outputs."""
    found = _named(kind, old, new, before, now)
    return _by_place(old, new) if found is None else found


def _guessed(
    old: int, new: int, before: dict[str, list[str]], now: dict[str, list[str]], widths: Collection[int]
) -> np.ndarray | None:
    """By every layout of these sizes, and one of `widths` by place as well; None where they do not agree."""
    carried = [np.arange(new)] if old == new and old in widths else []
    carried += [_places(before[kind], now[kind]) for kind in before.keys() & now.keys()
                if (len(before[kind]), len(now[kind])) == (old, new)]
    if not carried:
        return _by_place(old, new)
    return carried[0] if all((places == carried[0]).all() for places in carried) else None


def _places(before: list[str], now: list[str]) -> np.ndarray:
    places = {name: place for place, name in enumerate(before)}
    return np.array([places.get(name, NEW) for name in now], dtype=np.int64)


def _stacks(network: nn.Module) -> tuple[str, ...]:
    return tuple(f"{name}." for name in batch_norm.stack_names(network))


def _lost(
    network: nn.Module, missing: list[str], known: Collection[str], columns: Mapping[str, list[str]]
) -> list[str]:
    """Of the parameters of a network that are not in the other one, or not as they are here (`known`), those without
    which what both have is no start: vectors, hidden layers, and where it names all that depends on fields whatever is
    left. Not a layer for fields of a kind of which the other, of these `columns`, has none."""
    named, whole = per_field(network)
    apart = {key.rpartition(".")[0] for key, kinds in named.items()
             if any(kind and not columns.get(kind) for kind in kinds)}
    needed = [key for key in missing if key == EMBEDDING or key.startswith(_stacks(network)) or (
        whole and not key.startswith("embedding."))]
    return [key for key in needed if key in known or key.rpartition(".")[0] not in apart]


def _unlike(old: nn.Module, new: nn.Module) -> tuple[str, str, str] | None:
    """Another structure of the same layers is another function of them: its setting, there and here."""
    there, here = ("stacked" if getattr(network, "stacked", False) else "parallel" for network in (old, new))
    return ("cross_structure", there, here) if there != here else None


def _shapes(lost: list[str], stored: Mapping[str, Tensor], new: Mapping[str, Tensor]) -> tuple[str, str, str]:
    """The first of the parameters that are lost, and its shape there and here."""
    more = f" and {len(lost) - 1} more" if len(lost) > 1 else ""
    there, here = (str(list(each[lost[0]].shape)) if lost[0] in each else "nothing" for each in (stored, new))
    return lost[0] + more, there, here


def _embedding_rows(new: FusedEmbedding, old: FusedEmbedding, maps: dict[str, np.ndarray]) -> np.ndarray:
    rows = np.full(new.table_rows, NEW, dtype=np.int64)
    before = {slot.name: start for slot, start in _starts(old)}
    for slot, start in _starts(new):
        if slot.name in before:
            ids = maps[slot.name][1:]
            rows[start + 1 : start + slot.size] = np.where(ids == NEW, NEW, ids + before[slot.name])
    rows[0] = 0
    return rows


def _starts(embedding: FusedEmbedding) -> list[tuple[IdSlot, int]]:
    """Slots with the offset of their ids; of slots that share a table the target comes last."""
    slots = [(slot, int(reader.offsets[reader.places[slot.name]]))
             for reader in (embedding.request, embedding.candidate) for slot in reader.slots]
    return sorted(slots, key=lambda start: not start[0].sequence)


def _product_rows(new: FeatureSpec, old: FeatureSpec, maps: dict[str, np.ndarray]) -> np.ndarray:
    before, start = {}, 0
    for cross in old.products():
        for part in cross.parts:
            before[cross.name, part] = start
            start += old.slot(part).size
    parts = []
    for cross in new.products():
        for part in cross.parts:
            ids, first = maps[part], before.get((cross.name, part))
            parts.append(np.full(len(ids), NEW) if first is None else np.where(ids == NEW, NEW, ids + first))
    return np.concatenate(parts)


def _copy(old: Tensor, new: Tensor, axes: list[np.ndarray]) -> None:
    """new[i, j, ...] = old[axes[0][i], axes[1][j], ...] wherever none of them is NEW, PIECE rows at a time."""
    if not axes:
        new.copy_(old)
        return
    into = [torch.from_numpy(np.flatnonzero(axis != NEW)) for axis in axes]
    out_of = [torch.from_numpy(axis[axis != NEW]) for axis in axes]
    for start in range(0, len(into[0]), PIECE):
        here, there = ((rows[start : start + PIECE], *further) for rows, *further in (into, out_of))
        new[torch.meshgrid(*here, indexing="ij")] = old[torch.meshgrid(*there, indexing="ij")]
