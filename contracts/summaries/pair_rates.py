"""OUT/pair_rates/summary.json: the graph of co-occurrence, how its rates were fitted, and what they take in bytes."""

from __future__ import annotations

from typing import Any

from pydantic import field_serializer

from contracts.features.feature_spec import PairModel
from contracts.features.pair_graph import Relation
from contracts.summaries.summary import Record, Summary


class GraphFigures(Record):
    """Values are nodes, counted pairs of values edges; `rows` and `clicks` are those of the statistics window."""

    nodes: int
    edges: int
    pairs_observed: int
    relations: tuple[Relation, ...]
    rows: int
    clicks: int

    @field_serializer("relations")
    def _named(self, relations: tuple[Relation, ...]) -> list[dict[str, Any]]:
        return [relation._asdict() for relation in relations]


class PairRateBytes(Record):
    """`own` as served; `table` of the observed pairs; `dense` of all pairs of values."""

    own: int
    table: int
    dense: int


class PretrainEpoch(Record):
    """Weighted squared losses of one epoch: on the pairs fitted, and on those held out."""

    epoch: int
    train_loss: float
    validation_loss: float
    seconds: float


class PretrainFigures(Record):
    """How the rates were fitted; a table needs no fitting, and has an empty history and None in the rest."""

    history: tuple[PretrainEpoch, ...] = ()
    best_epoch: int | None = None
    edges_per_second: float | None = None
    resumed_epochs: int | None = None
    validation_loss: float | None = None


class PairRateJudgement(Record):
    """Validation AUCs of one ranker trained with the pair rates and without; they are read where they `pays`. `digest`
    changes with whatever the judgement depends on."""

    ranker: str
    auc_with: float
    auc_without: float
    gain: float
    standard_error: float
    pays: bool
    digest: str
    seconds: float

    @property
    def sentence(self) -> str:
        """What was found, and what to set where it is not wanted."""
        figures = (f"a {self.ranker} has a validation AUC of {self.auc_with:.4f} with them and {self.auc_without:.4f} "
                   f"without: {self.gain:+.4f} ± {self.standard_error:.4f}")
        if self.pays:
            return f"Rankers read the pair rates, which pay here: {figures}."
        return (f"Pair rates are left out: {figures}, no more than chance gives; with pair_rates.judge = false they "
                "are read all the same.")


class PairRatesSummary(Summary):
    """`pairs` of slots; without any, `model` is "none" and nothing else is known. `digest` changes with whatever the
    weights depend on, `pair_model.digest` is that of their file. Without a `judgement` rankers read them unasked."""

    pairs: tuple[tuple[str, str], ...]
    model: str
    graph: GraphFigures | None = None
    bytes: PairRateBytes | None = None
    history: tuple[PretrainEpoch, ...] | None = None
    best_epoch: int | None = None
    edges_per_second: float | None = None
    resumed_epochs: int | None = None
    validation_loss: float | None = None
    digest: str | None = None
    pair_model: PairModel | None = None
    judgement: PairRateJudgement | None = None
    seconds: float

    @property
    def are_read(self) -> bool:
        """Whether rankers read them."""
        return self.pair_model is not None and (self.judgement is None or self.judgement.pays)
