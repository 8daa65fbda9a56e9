"""A sequence encoder that starts from the parent bundle's of the same channel.

    items, values of columns   a row goes over by its key; new ones stay as initialised
    gaps of time               as they are
    all else                   as it is, where the name and the shape are the same

Of another width, or of blocks that are not the parent's, nothing goes over. Factorisations and LightGCN start from
nothing: ALS reaches its end in a few rounds, and a bundle holds what serves of the others, not what they train.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from contracts.artifacts import CHANNEL_SETTINGS, WEIGHTS
from contracts.bundle.bundle import load_array, load_weights
from contracts.config.stages import ENCODERS, TIME
from contracts.features import vocabulary
from contracts.features.event_features import EVENT
from contracts.features.feature_spec import FIRST_ID, PADDING, UNKNOWN
from contracts.features.vocabulary import Vocabulary
from contracts.summaries.train import WarmStartFigures
from models.interactions.event_log import EventLog
from models.sequences.encoder import SequenceEncoder
from models.training.id_maps import NEW
from models.training.warm_start import Parent

TABLES, ITEMS = "tables", "items.weight"
SAME = ("block", "blocks", "heads", "factor", "places")  # of settings, or the parent's layers mean something else


class CarriedEncoder:
    """The `start` of an encoder's fit. `figures` say afterwards what was carried; None where training starts cold."""

    def __init__(self, parent: Parent, name: str, log: EventLog) -> None:
        self._parent, self._log = parent, log
        self._folder = parent.folder / "retrieval" / "channels" / name
        self.figures: WarmStartFigures | None = None

    @torch.no_grad()
    def __call__(self, network: SequenceEncoder) -> None:
        """Changes the weights in place."""
        old = {name: torch.from_numpy(array) for name, array in load_weights(self._folder / WEIGHTS).items()}
        shape = network.settings.model_dump()
        before = json.loads((self._folder / CHANNEL_SETTINGS).read_text(encoding="utf-8"))["encoder"]
        if old[ITEMS].shape[1] != network.items.embedding_dim or any(before[key] != shape[key] for key in SAME):
            return
        rows, anew = dict(self._rows(old)), []
        for name, parameter in network.named_parameters():
            if name in rows:
                source, places = rows[name]
                kept = torch.from_numpy(np.flatnonzero(places != NEW))
                parameter[kept] = source[torch.from_numpy(places)[kept]]
            elif name in old and not name.startswith("told.") and old[name].shape == parameter.shape:
                parameter.copy_(old[name])
            else:
                anew.append(name)
        places = rows[ITEMS][1]
        self.figures = WarmStartFigures(parent=self._parent.manifest.version, rows=len(places),
                                        rows_carried=int((places != NEW).sum()), anew=tuple(anew))

    def _rows(self, old: dict[str, Tensor]) -> Iterator[tuple[str, tuple[Tensor, np.ndarray]]]:
        """Parameter -> the parent's table, and of each new row its place there, NEW where it has none."""
        tables, train = self._parent.folder / TABLES, self._log.split.train
        ids = np.append(load_array(self._folder / "items.npy"), UNKNOWN).astype(np.int64)  # place -1: not there
        yield ITEMS, (old[ITEMS], _places(vocabulary.read(tables, "items"), self._log.items, lambda at: ids[at]))
        known = {name: place for place, name in enumerate(_told(self._parent.config.retrieve.event_times,
                                                                self._parent.config.retrieve.event_columns))}
        told = _told(train.told is not None and train.told.gaps, tuple(self._log.columns))
        for place, name in enumerate(told):
            if name not in known:
                continue
            table = old[f"told.{known[name]}.weight"]
            places = np.arange(len(table)) if name == TIME else _places(
                vocabulary.read(tables, EVENT + name), self._log.columns[name], lambda at: at + FIRST_ID)
            yield f"told.{place}.weight", (table, places)


def _places(old: Vocabulary, new: Vocabulary, ids: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """With padding and unknown in front; `ids` gives the old id of a place among the old keys."""
    at = old.places_of(new)
    found = np.where(at >= 0, ids(at), UNKNOWN)
    return np.append([PADDING, UNKNOWN], np.where(found > UNKNOWN, found, NEW)).astype(np.int64)


def _told(gaps: bool, columns: tuple[str, ...]) -> tuple[str, ...]:
    return (*([TIME] if gaps else []), *columns)


def carried(parent: Parent | None, name: str, log: EventLog) -> CarriedEncoder | None:
    """None where the channel has nothing to start from."""
    if parent is None or name not in ENCODERS or not _holds(parent.folder, name):
        return None
    return CarriedEncoder(parent, name, log)


def _holds(folder: Path, name: str) -> bool:
    return (folder / "retrieval" / "channels" / name / WEIGHTS).exists()
