"""Rankers, pair rates and the search for crosses."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from contracts.config.section import ModelName, Numbers, Section

NEED_HIDDEN = frozenset({"final_mlp", "final_net"})


def no_hidden(model: str) -> str:
    """What is wrong with a network of NEED_HIDDEN where `train.hidden` is empty."""
    return (f"train.hidden is empty, and {model} is made of hidden layers: it needs 1 width at least, such as [64]; "
            f"give one, or leave {model} out")


class Train(Section):
    """How the rankers and the two towers are trained, which are, and which ranker is served."""
    models: tuple[ModelName, ...] = Field(
        ("popularity", "logistic_regression", "dnn", "dcn_v2", "din"),
        description="trained side by side; without din and din_sequence where dnn is named and no field is a "
        "sequence, which makes them the same, unless `ranker` names one",
    )
    ranker: ModelName | Literal["best"] = Field(
        "best", description="the model served; 'best' = by validation AUC (of rows at the same position, where the log "
        "has positions), but popularity, where `models` names it and what knows more gains no more than its standard "
        "error"
    )
    embedding_dim: int = Field(16, ge=1, description="width of a value's vector")
    hidden: tuple[int, ...] = Field((256, 128), description="widths of the MLP")
    cross_layers: int = Field(3, ge=1, description="of DCNv2 and GDCN")
    cross_rank: int = Field(64, ge=0, description="of DCNv2 and GDCN; 0: one full matrix, not the product of two")
    cross_structure: Literal["parallel", "stacked"] = Field(
        "parallel", description="of DCNv2 and GDCN: the MLP reads the inputs beside the cross layers, or their outputs"
    )
    wukong_layers: int = Field(2, ge=1, description="of the model 'wukong': crosses up to the order 2^layers")
    wukong_vectors: int = Field(8, ge=1, description="K of the model 'wukong': a layer gives 2 K vectors")
    edge_layers: int = Field(1, ge=1, le=5, description="of the model 'fives'")
    numbers: Numbers = Field(
        "plain", description="how every ranker reads a number beside its bins: as it is; with ramps between the edges "
        "of its finest bins of at most 32 (of the first named where all are finer); with sines and cosines of learned "
        "frequencies"
    )
    dropout: float = Field(0.2, ge=0, lt=1, description="of hidden units")
    batch_norm: bool = Field(
        True, description="batch normalisation of hidden units while training, where it starts from nothing; folded "
        "into the layers afterwards. Not in federated training"
    )
    embedding_l2: float = Field(
        1000.0, ge=0, description="precision of the Gaussian prior on vectors of values, spread over all training "
        "rows; a hundredth of it for a factorisation machine; 0: none",
    )
    ensemble: int = Field(
        1, ge=1, le=20, description="networks of different seeds, trained one after the other, whose mean logit is the "
        "model; each costs a further training and serves along. Not of popularity, nor in federated training"
    )
    item_prior: bool = Field(
        True, description="the popularity of the item, in logits, within every model, where no counter tells it; "
        "validation says how much it counts beside what a deep one has learned"
    )
    unknown_ids: bool = Field(
        True, description="ids are made unknown at random in training, so that they are as often so as in validation, "
        "and in a hundredth of the rows at least"
    )
    label_smoothing: float = Field(0.0, ge=0, lt=0.5, description="labels e and 1 - e in training")
    batch_size: int | None = Field(
        None, ge=1, description="rows of an update; without it by the size of the window, 64 to 4096"
    )
    epochs: int = Field(20, ge=1, description="at most")
    warm_start: str = Field(
        "champion", description="the alias of the registry whose weights training starts from, where there is one; "
        "empty: it always starts from nothing",
    )
    monitor: Literal["auc", "gauc", "log_loss"] = Field(
        "auc", description="the validation figure whose best epoch is kept"
    )
    patience: int = Field(
        2, ge=1, description="epochs in a row without a better validation figure or a lower loss before the rate "
        "falls, or training stops; those of a level loss count half"
    )
    learning_rate: float = Field(1e-3, gt=0)
    schedule: Literal["plateau", "linear", "constant"] = Field(
        "plateau", description="plateau: after `patience` a tenth of the rate, from the best weights, at most twice; "
        "linear: to 0 over the planned epochs. Towers fall linearly unless it is constant",
    )
    weight_decay: float = Field(1e-5, ge=0)
    second_moment: Literal["auto", "element", "row"] = Field(
        "auto", description="Adam's, of vectors of values: one per number or, for less memory, one per vector; "
        "auto: per vector from 10 million vectors on"
    )
    clip_norm: float = Field(10.0, gt=0, description="largest norm of the gradient")
    precision: Literal["auto", "fp32", "bf16"] = Field(
        "fp32", description="of the rankers' matrix products in training; auto: bf16 where the device multiplies it, "
        "and the widest layer and batches are of 256 at least"
    )
    device: str = Field("auto", description="as torch names it; auto: a GPU where there is one")
    calibration: Literal["isotonic", "platt"] = Field("isotonic", description="fitted on half of the validation window")
    lightgbm_rows: int = Field(
        0, ge=0, description="training rows of LightGBM, the reference from outside, such as 100000; 0: none"
    )
    checkpoint_minutes: float = Field(
        10.0, ge=0, description="between checkpoints of a model in training, of the cross search, of its comparison "
        "and of pair rates, which `--resume` takes up; 0: none, and a SIGTERM ends them at once"
    )
    tower_dim: int = Field(64, ge=2, description="width of the towers' vectors")
    tower_hidden: tuple[int, ...] = Field((128,), description="widths of the towers")
    tower_epochs: int = Field(6, ge=1, description="of the towers and of their pre-ranker")
    temperature: float = Field(0.1, gt=0, description="of the towers' softmax")
    tower_mixed: int = Field(
        0, ge=0, description="items drawn evenly from the catalogue that stand beside those of a batch in the towers' "
        "softmax; not in federated training, where no client has the catalogue"
    )
    tower_hard: int = Field(
        0, ge=0, description="of a click's negatives in the towers' softmax, so many that score highest count once more"
    )

    @model_validator(mode="after")
    def _layers_where_they_are_needed(self) -> Train:
        for model in (self.ranker, *self.models):
            if model in NEED_HIDDEN and not self.hidden:
                raise ValueError(no_hidden(model))
        return self

    def batch_rows(self, rows: int) -> int:
        """`batch_size`, or the largest power of two that gives at least 50 updates an epoch, from 64 to 4096."""
        return self.batch_size or min(4096, max(64, 2 ** (max(rows // 50, 1).bit_length() - 1)))


class PairRates(Section):
    """Pair rates: the click rate of pairs of values, known before training begins, as inputs of every ranker.

    A pair names two fields of one value or several (numeric ones by their bins, as in price#10). Without `pairs` no
    ranker reads a rate: beside a training window of some days rates of a shorter statistics window gain nothing. With
    `pairs` the run judges on validation whether they pay, and leaves them out where they do not.
    """

    pairs: tuple[tuple[str, str], ...] = Field((), description="of fields")
    model: Literal["pcf_gnn", "posterior", "factorisation", "two_tower", "table", "none"] = Field(
        "pcf_gnn", description="of a pair's rate; posterior: PCF-GNN's rate as the prior of what was counted of it"
    )
    dim: int = Field(16, ge=1, description="width of a value's vector")
    layers: int = Field(2, ge=0, le=4, description="rounds of message passing")
    neighbours: int = Field(15, ge=1, description="sampled per value and relation")
    aggregation: Literal["mean", "attention"] = Field("mean", description="over sampled neighbours")
    weighting: Literal["n", "sqrt", "log", "one"] = Field("n", description="weight of a pair shown n times")
    smoothing: float = Field(50.0, ge=0, description="pseudo-impressions at the prior rate in a rate that is looked up")
    pseudo_impressions: float = Field(1.0, ge=0, description="the same in a pair's rate that is fitted; 0: raw rates")
    epochs: int = Field(12, ge=1, description="at most")
    patience: int = Field(3, ge=1, description="epochs without a better held-out loss before it stops")
    batch_size: int = Field(1024, ge=1, description="pairs of values")
    learning_rate: float = Field(1e-3, gt=0)
    weight_decay: float = Field(1e-2, ge=0)
    fine_tune: bool = Field(False, description="train the vectors and heads on with the ranker")
    initialise_embeddings: bool = Field(False, description="start the rankers' embeddings at the vectors")
    judge: bool = Field(
        True, description="leave them all out unless a DNN trained with them gains on one without, on validation"
    )


class Crosses(Section):
    """The search of cross features (models/networks/fives.py) inside the training window; `budget` = 0 leaves it out.

    The graph network proposes `proposals` crosses by importance; those that gain at least `min_gain` nats on the
    holdout, given the crosses before them, are kept until a budget is spent.
    """

    budget: int = Field(18, ge=0, description="largest number of crosses")
    max_keys: int = Field(2_000_000, ge=1, description="largest number of keys of all crosses together")
    min_count: int = Field(5, ge=1, description="rows a key of a cross must have in the training window")
    max_columns: int = Field(
        64, ge=2, description="columns that are looked at, where there are more: those that say most alone"
    )
    layers: int = Field(2, ge=1, le=5, description="crosses join up to layers + 1 fields")
    dim: int = Field(16, ge=1, description="width of a value's vector")
    hidden: tuple[int, ...] = (64,)
    dropout: float = Field(0.0, ge=0, lt=1)
    readout: Literal["all", "last"] = Field("all", description="layers that the predictor reads")
    epochs: int = Field(2, ge=1)
    batch_size: int = Field(1024, ge=1)
    learning_rate: float = Field(2e-3, gt=0)
    edge_learning_rate: float = Field(2e-2, gt=0, description="of the edges")
    weight_decay: float = Field(1e-6, ge=0)
    temperature_end: float = Field(0.1, gt=0, le=1, description="of the edges' gates, from 1")
    holdout_share: float = Field(
        0.25, gt=0, lt=1, description="last share of the training window, on which crosses are evaluated"
    )
    thresholds: tuple[float, ...] = Field((), description="one per layer; empty: 0.5, then 0")
    proposals: int = Field(2000, ge=1, description="crosses of each order that pruning looks at, by importance")
    min_gain: float = Field(3.0, ge=0, description="nats on the holdout")
    sample_rows: int = Field(500_000, ge=1, description="most rows that pruning holds in memory")
    representation: Literal["embedding", "product"] = Field("embedding", description="of the crosses kept")
    compare_rows: int = Field(
        0, ge=0, description="rows for the comparison with baselines, such as 50000; 0: none"
    )

    @model_validator(mode="after")
    def _a_threshold_per_layer(self) -> Crosses:
        if self.thresholds and len(self.thresholds) != self.layers:
            raise ValueError(f"{len(self.thresholds)} thresholds for {self.layers} layers; give one per layer, or none")
        return self
