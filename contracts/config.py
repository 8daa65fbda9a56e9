"""One run's TOML as frozen pydantic models.

Unknown keys are refused with the nearest right one, and all errors of a file come in one message. `{data}` in a path
stands for the folder given with `--data`, or for the file's own `data` key.
"""

from __future__ import annotations

import difflib
import tomllib
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from contracts.duration import Duration, label
from contracts.errors import ConfigError

Side = Literal["user", "item", "context", "cross"]
Kind = Literal["categorical", "numeric", "multi_valued", "sequence", "counter", "cross"]
KeyType = Literal["string", "int64", "bool"]
ModelName = Literal[
    "popularity", "logistic_regression", "factorisation_machine", "dnn", "dcn_v2", "final_mlp", "din", "fives"
]


def _utc(value: object) -> object:
    """TOML dates and local times are read as UTC; strings as ISO 8601."""
    if isinstance(value, str):
        value = datetime.fromisoformat(value)
    if isinstance(value, datetime):
        return value if value.tzinfo else value.replace(tzinfo=UTC)
    if hasattr(value, "year"):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)  # type: ignore[attr-defined]
    return value


def instant(text: str | None) -> datetime | None:
    """ISO 8601, UTC where it names no zone. Raises ConfigError."""
    try:
        return None if text is None else _utc(text)  # type: ignore[return-value]
    except ValueError:
        raise ConfigError(f"{text!r} is no time; write it as in 2026-01-05T12:00:00") from None


Instant = Annotated[datetime, BeforeValidator(_utc)]
Share = Annotated[float, Field(ge=0.0, le=1.0)]
Window = tuple[Instant, Instant] | Share


DEFAULT_GRANULARITIES = (10,)


class Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class SparkSettings(Section):
    """How to reach Spark. An empty master leaves it to spark-submit."""

    master: str = Field("local[*]", description="as Spark takes it; empty: spark-submit decides")
    settings: dict[str, str] = Field({}, description="Spark's own settings")


class Source(Section):
    """Any table Spark can read: format and options go to the reader as they are."""

    path: str = Field(description="a file or folder; `{data}` is filled in")
    format: str = Field("parquet", description="name of a Spark reader")
    options: dict[str, str] = Field({}, description="of the reader")
    schema_ddl: str | None = Field(None, description="Spark DDL; needed where the file carries no types, such as CSV")
    derive: dict[str, str] = Field({}, description="new column -> Spark SQL expression over the raw columns")


class Log(Source):
    """The impressions (or plain rows): one row per shown item. `key` are the columns that identify an event."""

    user_id: str | None = Field(None, description="column")
    item_id: str | None = Field(None, description="column")
    request_id: str | None = Field(None, description="column: what was shown together")
    event_time: str | None = Field(None, description="column: when it was shown")
    known_time: str | None = Field(None, description="column: when the log learned of it")
    position: str | None = Field(
        None, description="column: slot from 1; its effect is learned, and left out when serving"
    )
    bid: str | None = Field(None, description="column: bid per click, for the auction")
    key: tuple[str, ...] = Field((), description="columns that identify an event; repeated events count once")
    history: Duration | None = Field(
        None, description="how far back a run reads from the end of its `--until` day; none given: all of the log"
    )
    max_bad_share: Share = Field(0.01, description="rows that may go to quarantine before the step fails")


class Clicks(Source):
    """Later events that turn an impression into a positive when they come within `window` of it."""

    on: tuple[str, ...] = Field(description="columns that join a click to its impression")
    event_time: str = Field("event_time", description="column")
    known_time: str | None = Field(None, description="column")
    window: Duration = Field(86_400, description="how long after an impression a click counts")


class Label(Section):
    """Exactly one of a Spark SQL expression over the log, or a table of later clicks."""

    expression: str | None = Field(None, description="Spark SQL over the log's columns, 0 or 1")
    clicks: Clicks | None = Field(None, description="a table of later events")

    @model_validator(mode="after")
    def _one_of(self) -> Label:
        if (self.expression is None) == (self.clicks is None):
            raise ValueError("give exactly one of label.expression and label.clicks")
        return self


class Table(Source):
    """A table of users or items, one row per key."""

    key: str = Field(description="column that the log's user or item column refers to")


class FieldConfig(Section):
    """One configured field; counters expand into one feature per statistic and window.

    kind            what it needs
    categorical     `column`
    numeric         `column`, `granularities` (numbers of quantile bins), `log`
    multi_valued    `column` holding an array (or text cut at `separator`), `length` values kept
    sequence        the last `length` values of `of` (an item-side categorical) the user clicked, newest first
    counter         `by` (columns of one side), `windows`, `statistics`
    cross           `parts` (names of fields, or `field#bins`), hashed into `buckets` or, when 0, a fitted vocabulary
    """

    name: str = Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    kind: Kind
    side: Side
    column: str | None = Field(None, description="none: as the name")
    key_type: KeyType = Field("string", description="what the raw values are")
    min_count: int = Field(2, ge=1, description="rarer values count as unknown")
    granularities: tuple[int, ...] = Field((), description="numbers of quantile bins, one id slot each; none given: 10")
    log: bool = Field(False, description="scale ln(1 + x)")
    separator: str | None = Field(None, description="where the values are one text")
    length: int = Field(1, ge=1, le=200, description="values kept")
    of: str | None = Field(None, description="of a sequence: the item field it remembers")
    by: tuple[str, ...] = Field((), description="of a counter: columns of one side")
    windows: tuple[Duration, ...] = Field((), description="of a counter")
    statistics: tuple[Literal["count", "rate"], ...] = Field(("count", "rate"), description="of a counter")
    prior_strength: float = Field(20.0, gt=0, description="of a rate: pseudo-impressions at the base rate")
    parts: tuple[str, ...] = Field((), description="of a cross")
    buckets: int = Field(0, ge=0, description="of a cross; 0: a fitted vocabulary")
    representation: Literal["embedding", "product"] = Field(
        "embedding", description="of a cross: vectors of its own, or the product of factors of its parts"
    )
    cost: float = Field(1.0, ge=0, description="of one look-up, in plain look-ups; the pre-ranker is charged it")

    @property
    def source_column(self) -> str:
        return self.column or self.name

    def counters(self) -> list[tuple[str, str, int]]:
        """(feature name, statistic, window in seconds) of every feature a counter expands into."""
        return [(f"{self.name}_{s}_{label(w)}", s, w) for w in self.windows for s in self.statistics]

    def features(self) -> list[str]:
        """Names of the features that the field stands for: its own, or those that a counter expands into."""
        return [name for name, _, _ in self.counters()] or [self.name]

    def bins(self) -> tuple[int, ...]:
        """Numbers of bins of each feature that is a number."""
        return (self.granularities or DEFAULT_GRANULARITIES) if self.kind in ("numeric", "counter") else ()

    @model_validator(mode="after")
    def _complete(self) -> FieldConfig:
        needs: dict[str, tuple[str, ...]] = {"sequence": ("of",), "counter": ("by", "windows"), "cross": ("parts",)}
        missing = [key for key in needs.get(self.kind, ()) if not getattr(self, key)]
        if missing:
            raise ValueError(f"field {self.name!r} of kind {self.kind} needs {', '.join(missing)}")
        if self.kind == "cross" and (self.side != "cross" or len(self.parts) < 2):
            raise ValueError(f"cross {self.name!r} needs side = 'cross' and at least two parts")
        if self.kind == "sequence" and self.side != "user":
            raise ValueError(f"sequence {self.name!r} is a history of the user: set side = 'user'")
        if self.kind == "counter" and self.side not in ("user", "item"):
            raise ValueError(f"counter {self.name!r}: side must be 'user' or 'item', not {self.side!r}")
        if self.kind != "cross" and self.side == "cross":
            raise ValueError(f"field {self.name!r}: only kind 'cross' may have side 'cross'")
        return self


class Windows(Section):
    """Statistics ▶ train ▶ validation ▶ test, as dates [start, end) or as shares of the rows in time order.

    The last `embargo` seconds of each window are left out; it must be at least the label window (None = equal to it).
    A log without times has shares of the rows by their hash, and no embargo.
    """

    statistics: Window = 0.2
    train: Window = 0.6
    validation: Window = 0.1
    test: Window = 0.1
    embargo: Duration | None = Field(
        None, description="left out at the end of each window; none given: the label window"
    )
    test_where: str | None = Field(
        None,
        description="Spark SQL over the log's columns: the rows of the test window in a table without times; `test` is "
        "then not read, and the other shares split the rest",
    )

    def named(self) -> dict[str, Window]:
        return {"statistics": self.statistics, "train": self.train, "validation": self.validation, "test": self.test}

    @model_validator(mode="after")
    def _ordered(self) -> Windows:
        spans = {name: span for name, span in self.named().items() if isinstance(span, tuple)}
        if 0 < len(spans) < 4:
            raise ValueError("windows are either all dates or all shares")
        if not spans:
            total = sum(float(w) for w in self.named().values() if not isinstance(w, tuple))
            if abs(total - 1.0) > 1e-6 and self.test_where is None:
                raise ValueError(f"the shares of the windows add up to {total:g}; they must add up to 1")
            needed = ("train", "validation", *(() if self.test_where else ("test",)))
            empty = [n for n in needed if self.named()[n] == 0]
            if empty:
                raise ValueError(f"window {empty[0]!r} has share 0 and would be empty; give it at least 0.01")
        names = list(spans)
        for name, (start, end) in spans.items():
            if start >= end:
                raise ValueError(f"window {name!r} is empty: {start:%Y-%m-%d %H:%M} is not before {end:%Y-%m-%d %H:%M}")
        for left, right in pairwise(names):
            if spans[left][1] > spans[right][0]:
                raise ValueError(
                    f"windows overlap: {left!r} ends {spans[left][1]:%Y-%m-%d %H:%M}, after {right!r} starts "
                    f"{spans[right][0]:%Y-%m-%d %H:%M}; end it there or earlier"
                )
        return self


class Features(Section):
    """`publish_every` = 0 means event-fresh; `also_fresh` writes event-fresh twins next to the published features."""

    publish_every: Duration = Field(86_400, description="how often the served tables are published; 0: event-fresh")
    also_fresh: bool = Field(False, description="event-fresh twins beside the published features")
    negative_rate: float = Field(1.0, gt=0, le=1.0, description="share w of negatives kept in the training window")


class Train(Section):
    models: tuple[ModelName, ...] = Field(
        ("popularity", "logistic_regression", "dnn", "dcn_v2", "din"), description="trained side by side"
    )
    ranker: ModelName | Literal["best"] = Field("best", description="the model served; 'best' = by validation AUC")
    embedding_dim: int = Field(16, ge=1, description="width of a value's vector")
    hidden: tuple[int, ...] = Field((256, 128), description="widths of the perceptron")
    cross_layers: int = Field(3, ge=1, description="of DCNv2")
    cross_rank: int = Field(64, ge=1, description="of DCNv2")
    edge_layers: int = Field(1, ge=1, le=5, description="of the model 'fives'")
    dropout: float = Field(0.1, ge=0, lt=1)
    batch_size: int = Field(4096, ge=1)
    epochs: int = Field(4, ge=1, description="at most")
    warm_start: str = Field(
        "champion", description="the alias of the registry whose weights training starts from, where there is one; "
        "empty: it always starts from nothing",
    )
    patience: int = Field(1, ge=1, description="epochs without a better validation loss before training stops")
    learning_rate: float = Field(1e-3, gt=0)
    schedule: Literal["linear", "constant"] = Field(
        "linear", description="linear: the learning rate falls to 0 over the planned epochs"
    )
    weight_decay: float = Field(1e-5, ge=0)
    clip_norm: float = Field(10.0, gt=0, description="largest norm of the gradient")
    precision: Literal["fp32", "bf16"] = "fp32"
    device: str = Field("auto", description="as torch names it; auto: a GPU where there is one")
    calibration: Literal["isotonic", "platt"] = Field("isotonic", description="fitted on half of the validation window")
    outside_rows: int = Field(
        100_000, ge=0, description="training rows of LightGBM, the reference from outside; 0: none"
    )
    tower_dim: int = Field(64, ge=2, description="width of the towers' vectors")
    tower_hidden: tuple[int, ...] = Field((128,), description="widths of the towers")
    tower_epochs: int = Field(6, ge=1)
    temperature: float = Field(0.1, gt=0, description="of the towers' softmax")


class Statistics(Section):
    """Cross statistics: the click rate of value pairs, known before training begins, as inputs of every ranker.

    A pair names two fields of one value or several (numeric ones by their bins, as in price#10). Without `pairs` the
    order-2 crosses that the cross search found are taken; where there are none either, there are no statistics.
    """

    pairs: tuple[tuple[str, str], ...] = Field((), description="of fields")
    model: Literal["pcf_gnn", "factorisation", "two_tower", "table", "none"] = "pcf_gnn"
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


class Crosses(Section):
    """The search of cross features (models/fives.py) inside the training window; `budget` = 0 leaves it out.

    The graph network proposes `proposals` crosses by importance; those that gain at least `min_gain` nats on its held
    rows, given the crosses before them, are kept until a budget is spent.
    """

    budget: int = Field(18, ge=0, description="largest number of crosses")
    max_keys: int = Field(2_000_000, ge=1, description="largest number of keys of all crosses together")
    min_count: int = Field(5, ge=1, description="rows a key of a cross must have in the training window")
    layers: int = Field(2, ge=1, le=5, description="crosses join up to layers + 1 fields")
    dim: int = Field(16, ge=1, description="width of a value's vector")
    hidden: tuple[int, ...] = (64,)
    dropout: float = Field(0.0, ge=0, lt=1)
    readout: Literal["all", "last"] = Field("all", description="layers that the predictor reads")
    epochs: int = Field(2, ge=1)
    batch_size: int = Field(1024, ge=1)
    learning_rate: float = Field(2e-3, gt=0)
    structure_rate: float = Field(2e-2, gt=0, description="learning rate of the edges")
    weight_decay: float = Field(1e-6, ge=0)
    temperature_end: float = Field(0.1, gt=0, le=1, description="of the edges' gates, from 1")
    held_share: float = Field(0.25, gt=0, lt=1, description="last share of the training window, which judges")
    thresholds: tuple[float, ...] = Field((), description="one per layer; empty: 0.5, then 0")
    proposals: int = Field(2000, ge=1, description="crosses of each order that pruning looks at, by importance")
    min_gain: float = Field(3.0, ge=0, description="nats on the held rows")
    sample_rows: int = Field(500_000, ge=1, description="most rows that pruning holds in memory")
    representation: Literal["embedding", "product"] = Field("embedding", description="of the crosses kept")
    compare_rows: int = Field(50_000, ge=0, description="rows for the comparison with rivals; 0: none")

    @model_validator(mode="after")
    def _a_threshold_per_layer(self) -> Crosses:
        if self.thresholds and len(self.thresholds) != self.layers:
            raise ValueError(f"{len(self.thresholds)} thresholds for {self.layers} layers; give one per layer, or none")
        return self


class Retrieve(Section):
    """Quotas per channel; their merge without duplicates is cut to `candidates`."""

    candidates: int = Field(1000, ge=1, description="handed to the pre-ranker")
    two_tower: int = Field(800, ge=0, description="quota")
    item_to_item: int = Field(100, ge=0, description="quota: neighbours of recent items")
    popularity: int = Field(100, ge=0, description="quota")
    neighbours: int = Field(20, ge=1, description="similar items kept per item for the item-to-item channel")
    flat_below: int = Field(100_000, ge=0, description="exact search up to this many items, IVF beyond")
    max_codes: int = Field(20_000, ge=1, description="bound of one IVF search")
    filter_fields: tuple[str, ...] = Field((), description="item columns a request may filter by")


class Prerank(Section):
    """Which score cuts the retrieved candidates to `keep`, and how FSCD (models/fscd.py) is chosen and trained.

    kind          the score
    fscd          a network over the fields that pay for themselves
    towers        a small perceptron over the two towers' vectors
    dot_product   the two towers' inner product, as retrieval left it
    """

    kind: Literal["fscd", "towers", "dot_product"] | None = Field(
        None, description="none given: fscd where the log has items and times, else towers"
    )
    keep: int = Field(200, ge=1, description="handed to the ranker")
    hidden: tuple[int, ...] = Field((64, 32), min_length=1, description="widths of the perceptron")
    item_part: Literal["precomputed", "fresh"] = Field(
        "precomputed", description="where the item half of the first layer comes from: the bundle, or the request"
    )
    embedding_dim: int = Field(8, ge=1, description="width of a value's vector")
    requests: int = Field(1000, ge=1, description="requests of the training window whose candidates are learned from")
    judged_requests: int = Field(150, ge=1, description="requests of validation, and of test, that judge")
    list_length: int = Field(128, ge=2, description="candidates drawn of each request to learn from")
    batch_size: int = Field(1024, ge=2, description="candidates per step; the penalty does not depend on it")
    warm_steps: int = Field(150, ge=0, description="steps with gates and no penalty")
    sweep_steps: int = Field(60, ge=1, description="steps with gates at each penalty")
    tune_steps: int = Field(60, ge=0, description="steps without gates for each point of the frontier")
    final_steps: int = Field(300, ge=0, description="further steps without gates for the chosen point")
    learning_rate: float = Field(5e-3, gt=0)
    gate_rate: float = Field(5e-2, gt=0, description="learning rate of the gates' logits")
    penalties: tuple[float, ...] = Field(
        (0.01, 0.03, 0.06, 0.12, 0.25, 0.5, 1.2, 3.0), min_length=1,
        description="nats per sample that all fields together are charged; over the sum of their c it is reg_scale",
    )
    clicks: float = Field(1.0, ge=0, description="weight of the click labels' log loss")
    distillation: float = Field(1.0, ge=0, description="weight of the log loss against the ranker's probabilities")
    consistency: float = Field(1.0, ge=0, description="weight of the list-wise loss against the ranker's order")
    top: int = Field(10, ge=1, description="m of the recall of the ranker's top m")
    budget: float | None = Field(
        None, gt=0, description="largest price: microseconds per 1,000 candidates with a cost file, else summed cost"
    )
    tolerance: float = Field(0.005, ge=0, description="recall that the cheapest good point may lack; without a budget")
    computation_weight: float = Field(1.0, ge=0, description="g1 of the paper")
    dimension_weight: float = Field(1e-2, ge=0, description="g2 of the paper")
    key_weight: float = Field(1e-7, ge=0, description="g3 of the paper")

    @model_validator(mode="after")
    def _rising(self) -> Prerank:
        if list(self.penalties) != sorted(set(self.penalties)) or self.penalties[0] < 0:
            raise ValueError(f"prerank.penalties {list(self.penalties)} must rise from 0 or more")
        return self


class Rerank(Section):
    """'auto' = auction where the log has bids, MMR otherwise."""

    kind: Literal["auto", "auction", "mmr", "none"] = "auto"
    reserve_price: float = Field(0.0, ge=0, description="smallest eCPM (bid x probability x 1000) that may be shown")
    diversity: float = Field(0.1, ge=0, le=1, description="weight of the diversity in MMR")


class Serve(Section):
    default_limit: int = Field(10, ge=1)
    max_limit: int = Field(100, ge=1, description="most items of one answer")
    max_candidates: int = Field(2000, ge=1, description="most explicit candidates of one request")
    deadline_ms: int = Field(100, ge=1, description="used where the caller sets none")
    parity_rows: int = Field(256, ge=1, description="kept in the bundle")


FEDERATED_SETTINGS = (
    "cpp1", "cpp2", "cpp3", "cpp4", "cpp5", "fedsubavg", "fedavg", "fedprox", "fedlaavg", "fedlaavg_full", "central",
)
INDEX_POLICIES = ("all", "scope", "cpp1", "cpp2", "cpp3", "cpp4", "cpp5")
MASKINGS = ("none", "union", "per_row")
AVERAGING_RULES = ("holders", "heat", "plain", "latest")


class FederatedOwn(Section):
    """What one setting trains with in place of the values of `[federated]`; each setting has a best of its own."""

    rounds: int | None = Field(None, ge=1)
    local_epochs: int | None = Field(None, ge=1)
    batch_size: int | None = Field(None, ge=1)
    learning_rate: float | None = Field(None, gt=0)
    clip: float | None = Field(None, gt=0)


class Federated(Section):
    """Rounds in which the users of the log are clients. See federated/ for what each setting means.

    setting                    rows a client names        masks     averaging
    cpp1 cpp2 cpp3 cpp4        randomised answers         per row   holders
    cpp5                       the round's union          union     holders
    fedsubavg                  randomised (level cpp2)    per row   heat
    fedavg fedprox             all rows                   none      plain
    fedlaavg                   the round's union          union     latest
    fedlaavg_full              all rows                   union     latest
    central                    one client with all data
    P-M-A                      any policy, masks and averaging, as in cpp2-none-plain

    P: all, scope (public buckets), cpp1 to cpp5. M: none, union, per_row. A: holders, heat, plain, latest.
    """

    fields: tuple[str, ...] = Field((), description="the fields used; empty: all of the configuration")
    settings: tuple[str, ...] = Field(("cpp2",), description="each trains a model of its own")
    served: str = Field("cpp2", description="the one that becomes the bundle; must be among `settings`")
    model: ModelName = Field("din", description="any that learns: popularity does not")
    retrieval: bool = Field(
        True, description="the rounds train towers and pre-ranker too; without, there are figures and no bundle"
    )
    rounds: int = Field(50, ge=1, description="of each setting")
    population: int = Field(0, ge=0, description="most users that become clients; 0: all")
    clients: int = Field(20, ge=3, description="of one round")
    availability: Literal["always", "alternating", "day_cycle", "random", "trace"] = Field(
        "always", description="who can be reached in a round"
    )
    availability_period: int = Field(20, ge=2, description="rounds of one alternation or day")
    availability_share: Share = Field(0.5, description="of the day, or the probability, that a client is there")
    availability_trace: str = Field("", description="the file of a trace: a line a round, client numbers on it")
    availability_by: str = Field("", description="a field whose equal values come together; empty: drawn per client")
    local_epochs: int = Field(1, ge=1, description="that a client trains in a round")
    batch_size: int = Field(8, ge=1, description="samples of a local step")
    learning_rate: float = Field(0.3, gt=0, description="of local gradient descent")
    decay: float = Field(0.999, gt=0, le=1, description="of the learning rate, each round")
    proximal: float = Field(0.01, ge=0, description="FedProx: weight of the distance to the round's model")
    prior: float = Field(0.5, gt=0, lt=1, description="public guess at the label rate, where the model starts")
    clip: float = Field(2.0, gt=0, description="largest entry of a client's update")
    largest_weight: int = Field(1000, ge=1, description="most samples of a client; it uses no more")
    largest_heat: float = Field(50.0, gt=0, description="clip of N / n_j in FedSubAvg")
    masked: bool = Field(
        True, description="false: every setting without masks, so the server sees each update; for experiments, since "
                          "the sums and so the model are the same, sooner"
    )
    neighbours: int = Field(40, ge=2, description="clients that each masks with")
    least_clients: int = Field(3, ge=3, description="a smaller round is refused by every client")
    public_up_to: int = Field(64, ge=0, description="tables of up to so many ids belong to every submodel")
    contributors: int = Field(1, ge=1, description="rows held by fewer clients of a round stay out of its union")
    scope_buckets: int = Field(0, ge=0, description="policy scope: public buckets of rows, one is trained a round")
    noise: float = Field(0.0, ge=0, description="variance, in steps, of each client's Skellam noise; 0: none")
    noise_norm: float = Field(
        0.0, ge=0, description="with noise: largest L2 norm, in steps, of what a client sends; longer is scaled down"
    )
    delta: float = Field(1e-5, gt=0, lt=1, description="of the noise's epsilon")
    lost: float = Field(0.0, ge=0, lt=1, description="simulated share of clients lost in a round, at any phase")
    evaluate_every: int = Field(10, ge=1, description="rounds between two evaluations")
    timeout: float = Field(600.0, gt=0, description="seconds that a phase waits for answers")
    own: dict[str, FederatedOwn] = Field({}, description="setting -> values of its own, as in [federated.own.fedavg]")

    def of(self, setting: str) -> Federated:
        """With the setting's own values."""
        own = self.own.get(setting, FederatedOwn()).model_dump(exclude_none=True)
        return self.model_copy(update=own)

    @field_validator("settings", "own")
    @classmethod
    def _settings_are_known(cls, named: Any) -> Any:
        for name in named:
            parts = name.split("-")
            known = len(parts) == 3 and all(
                part in among
                for part, among in zip(parts, (INDEX_POLICIES, MASKINGS, AVERAGING_RULES), strict=True)
            )
            if name not in FEDERATED_SETTINGS and not known:
                raise ValueError(
                    f"{name!r} is no setting; take {', '.join(FEDERATED_SETTINGS)}, or POLICY-MASKS-AVERAGING of "
                    f"{', '.join(INDEX_POLICIES)}; {', '.join(MASKINGS)}; {', '.join(AVERAGING_RULES)}"
                )
        return named

    @model_validator(mode="after")
    def _parts_fit_together(self) -> Federated:
        if self.served not in self.settings:
            raise ValueError(f"served is {self.served!r}, which is not among settings {list(self.settings)}; add it")
        if self.noise and not self.noise_norm:
            raise ValueError("noise without noise_norm bounds nothing; give noise_norm, the largest L2 norm in steps")
        return self


class Gate(Section):
    """When a challenger may become champion; both are judged on the same test window."""

    margin: float = Field(
        0.002, ge=0, description="refused when the lower 95% bound of its GAUC minus the champion's lies below -margin"
    )
    draws: int = Field(500, ge=20, description="of the bootstrap over users")
    max_miscalibration: float = Field(
        0.2, gt=0, description="refused when predicted over observed is surely beyond 1 + this, or its inverse"
    )
    max_latency_ratio: float = Field(1.5, gt=1, description="of median milliseconds over the champion's")
    latency_requests: int = Field(200, ge=10)


class Watch(Section):
    """When the served champion is to be rolled back, by its answers and the clicks on them.

    A figure counts against it only where its whole 95% interval lies beyond the limit, so that few answers stay silent.
    """

    span: Duration = Field(86_400, description="of the answers looked at, unless the command says since when")
    min_answers: int = Field(500, ge=100, description="fewer answers of the champion are not judged")
    max_error_rate: float = Field(0.01, ge=0, lt=1, description="answers that failed by the server's fault")
    max_p99_ms: float = Field(100.0, gt=0, description="milliseconds between a request's arrival and its answer")
    max_p99_ratio: float = Field(2.0, gt=1, description="of that over the bundle's before it, in the same log")
    max_miscalibration: float = Field(
        0.25, gt=0, description="predicted over observed clicks may lie between 1 + this and its inverse"
    )
    min_clicks: int = Field(50, ge=10, description="of predicted or observed clicks; with fewer they are not judged")
    click_wait: Duration = Field(
        3_600, description="a click counts so long after its answer, at most the label window; younger answers wait"
    )
    draws: int = Field(500, ge=20, description="of the bootstrap over users")


class Quality(Section):
    """What a day's data may look like: limits are learned from earlier days, up to `history_days` of them.

    A figure's limit lies `deviations` robust standard deviations from its median on those days, and never nearer than
    its floor. With fewer than `min_history` such days a figure is shown and not judged. `limits` overrides: "rows",
    "label_rate" as (lowest, highest), and by column "null_rate.COLUMN", "churn.COLUMN", "psi.COLUMN" as the highest.
    """

    history_days: int = Field(28, ge=1)
    min_history: int = Field(3, ge=2)
    deviations: float = Field(6.0, gt=0)
    rows_floor: float = Field(0.5, gt=0, description="of the logarithm of the number of rows")
    label_rate_floor: float = Field(0.3, gt=0, description="of the logarithm of the label rate")
    null_rate_floor: float = Field(0.02, gt=0)
    churn_floor: float = Field(0.05, gt=0, description="of the share of rows whose value no earlier day had")
    psi_floor: float = Field(0.2, gt=0, description="of the population stability index against the earlier days")
    limits: dict[str, float | tuple[float, float]] = {}

    @model_validator(mode="after")
    def _known_limits(self) -> Quality:
        for name, limit in self.limits.items():
            figure, dot, column = name.partition(".")
            both = isinstance(limit, tuple)
            if both != (name in ("rows", "label_rate")) or not (both or (
                figure in ("null_rate", "churn", "psi") and dot and column
            )):
                raise ValueError(f"quality.limits {name!r} = {limit!r}: rows and label_rate take [lowest, highest]; "
                                 "null_rate.COLUMN, churn.COLUMN and psi.COLUMN take the highest")
        return self


class Simulation(Section):
    """Settings of the simulated marketplace; see pipelines/marketplace.py for their meaning."""

    events: int = Field(500_000, ge=1, description="impressions")
    users: int = Field(20_000, ge=1)
    items: int = Field(5_000, ge=1)
    days: int = Field(14, ge=1)
    start: Instant = datetime(2026, 1, 5, tzinfo=UTC)
    click_rate: float = Field(0.035, gt=0, lt=1, description="aimed at")
    shares: dict[str, float] = Field({}, description="of the logit's variance, by term")
    drift: float = Field(0.0, ge=0, description="radians a day by which tastes turn into others; 0: they stay")


class Config(Section):
    name: str = Field(pattern=r"^[A-Za-z0-9_-]+$", description="names the bundle")
    version: str = Field("1", description="of the data that the file describes")
    seed: int = Field(2026, description="of everything random")
    data: str | None = Field(None, description="the folder that `{data}` stands for")
    spark: SparkSettings = SparkSettings()
    log: Log
    label: Label
    users: Table | None = None
    items: Table | None = None
    fields: tuple[FieldConfig, ...] = Field(min_length=1)
    windows: Windows = Windows()
    features: Features = Features()
    statistics: Statistics = Statistics()
    train: Train = Train()
    crosses: Crosses = Crosses()
    retrieve: Retrieve = Retrieve()
    prerank: Prerank = Prerank()
    rerank: Rerank = Rerank()
    serve: Serve = Serve()
    federated: Federated = Federated()
    gate: Gate = Gate()
    quality: Quality = Quality()
    watch: Watch = Watch()
    simulation: Simulation | None = None

    @property
    def label_window(self) -> int:
        """Seconds after an impression during which a click still counts."""
        return self.label.clicks.window if self.label.clicks else 0

    @property
    def prerank_kind(self) -> Literal["fscd", "towers", "dot_product"]:
        """The configured kind, or what the log allows."""
        return self.prerank.kind or ("fscd" if self.log.item_id and self.log.event_time else "towers")

    @property
    def embargo(self) -> int:
        return self.label_window if self.windows.embargo is None else self.windows.embargo

    def path(self, source: Source, data: Path | None = None) -> str:
        """The source's path with `{data}` filled in. Raises ConfigError when there is nothing to fill in."""
        if "{data}" not in source.path:
            return source.path
        folder = str(data) if data else self.data
        if folder is None:
            raise ConfigError(
                f"{source.path!r} needs a data folder: give --data DIR or set `data` in the configuration"
            )
        return source.path.replace("{data}", folder)

    @model_validator(mode="after")
    def _consistent(self) -> Config:
        problems = [
            *self.field_problems(), *self._counter_problems(), *self._role_problems(), *self._pair_problems(),
            *self._stage_problems(),
        ]
        if problems:
            raise ValueError("; ".join(problems))
        return self

    def field_problems(self) -> list[str]:
        names = [f.name for f in self.fields]
        problems = [f"field {n!r} is defined twice" for n in dict.fromkeys(names) if names.count(n) > 1]
        by_name = {f.name: f for f in self.fields}
        features = {name: f for f in self.fields for name in f.features()}
        for field in self.fields:
            if field.kind == "sequence" and (
                field.of not in by_name or (by_name[field.of].kind, by_name[field.of].side) != ("categorical", "item")
            ):
                problems.append(f"sequence {field.name!r}: of = {field.of!r} must name a categorical field of the item")
            for part in field.parts:
                base, _, bins = part.partition("#")
                if base not in features:
                    problems.append(f"cross {field.name!r}: part {part!r} is no field{_nearest(base, [*features])}")
                elif bins and (not bins.isdigit() or int(bins) not in features[base].bins()):
                    problems.append(f"cross {field.name!r}: {base!r} has no granularity {bins!r}")
                elif not bins and features[base].kind != "categorical":
                    problems.append(
                        f"cross {field.name!r}: {base!r} is no categorical field; name its bins, as in {base}#10"
                    )
        return problems

    def _pair_problems(self) -> list[str]:
        by_name = {name: f for f in self.fields for name in f.features()}
        problems = []
        if self.statistics.pairs and self.log.event_time is None:
            problems.append("statistics.pairs need a window of their own in time; set log.event_time")
        for pair in self.statistics.pairs:
            where = f"statistics.pairs {list(pair)}"
            if len({part.partition("#")[0] for part in pair}) < 2 or self.statistics.pairs.count(pair) > 1:
                problems.append(f"{where}: a pair takes two different fields, once")
            for part in pair:
                base, _, bins = part.partition("#")
                if base not in by_name:
                    problems.append(f"{where}: {part!r} is no field{_nearest(base, list(by_name))}")
                elif bins and (not bins.isdigit() or int(bins) not in by_name[base].bins()):
                    problems.append(f"{where}: {base!r} has no granularity {bins!r}")
                elif not bins and by_name[base].kind not in ("categorical", "multi_valued"):
                    problems.append(f"{where}: {base!r} has no values of its own; name its bins, as in {base}#10")
        if self.statistics.initialise_embeddings and self.statistics.dim != self.train.embedding_dim:
            problems.append(
                f"statistics.initialise_embeddings needs vectors as wide as the embeddings: statistics.dim is "
                f"{self.statistics.dim}, train.embedding_dim {self.train.embedding_dim}"
            )
        return problems

    def _counter_problems(self) -> list[str]:
        return [
            f"counter {field.name!r}: a rate over {label(window)} would always be empty, because an impression counts "
            f"only when its label window of {label(self.label_window)} has closed; give a longer window, or "
            "statistics = ['count']"
            for field in self.fields
            for _, statistic, window in field.counters()
            if statistic == "rate" and window <= self.label_window
        ]

    def _role_problems(self) -> list[str]:
        """What the configuration asks for and a log without times, users or items cannot have."""
        log, windows, problems = self.log, self.windows, []
        if log.event_time and windows.test_where is not None:
            problems.append("windows.test_where is for tables without times and would let the test window mix with the "
                            "others; give windows.test as dates, or leave log.event_time out")
        if not log.event_time:
            problems += self._timeless_problems()
        roles = {"user": ("log.user_id", log.user_id), "item": ("log.item_id", log.item_id)}
        for field in self.fields:
            role, given = roles.get(field.side, ("", None))
            if field.kind in ("sequence", "counter") and not given:
                problems.append(
                    f"{field.kind} {field.name!r} needs {role}, which says whose history it is; set it, or leave the "
                    "field out"
                )
        return problems

    def _timeless_problems(self) -> list[str]:
        problems = [
            f"{field.kind} {field.name!r} needs times, and the log has none; set log.event_time, or leave the field out"
            for field in self.fields
            if field.kind in ("sequence", "counter")
        ]
        if any(isinstance(window, tuple) for window in self.windows.named().values()):
            problems.append("windows as dates need log.event_time; set it, or give the windows as shares of the rows")
        if self.windows.embargo:
            problems.append("windows.embargo needs log.event_time; set it, or leave the embargo out")
        return problems

    def _stage_problems(self) -> list[str]:
        problems = []
        if self.windows.embargo is not None and self.windows.embargo < self.label_window:
            problems.append(
                f"windows.embargo is {self.windows.embargo} s, shorter than the label window of {self.label_window} s; "
                "labels of one window would be decided inside the next"
            )
        if self.rerank.kind == "auction" and self.log.bid is None:
            problems.append("rerank.kind = 'auction' needs log.bid")
        if self.prerank.kind == "fscd" and not (self.log.item_id and self.log.event_time):
            problems.append("prerank.kind = 'fscd' learns from past requests: set log.item_id and log.event_time, or "
                            "take 'towers'")
        if self.prerank.top > self.prerank.keep:
            problems.append(f"prerank.top {self.prerank.top} exceeds prerank.keep {self.prerank.keep}")
        if self.prerank.keep > self.retrieve.candidates:
            problems.append(f"prerank.keep {self.prerank.keep} exceeds retrieve.candidates {self.retrieve.candidates}")
        if self.serve.default_limit > self.serve.max_limit:
            problems.append(f"serve.default_limit {self.serve.default_limit} exceeds max_limit {self.serve.max_limit}")
        if self.serve.max_limit > self.prerank.keep:
            problems.append(f"serve.max_limit {self.serve.max_limit} exceeds prerank.keep {self.prerank.keep}")
        return problems


def _nearest(word: str, candidates: list[str]) -> str:
    close = difflib.get_close_matches(word, candidates, n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


def _known_keys(location: tuple[int | str, ...]) -> list[str]:
    """Keys allowed in the section that `location` (a pydantic error location) lies in."""
    model: Any = Config
    for step in location[:-1]:
        if isinstance(step, int):
            continue
        info = model.model_fields.get(step) if isinstance(model, type) and issubclass(model, BaseModel) else None
        if info is None:
            continue
        options = [info.annotation, *get_args(info.annotation)]
        model = next((o for o in options if isinstance(o, type) and issubclass(o, BaseModel)), model)
    return list(model.model_fields)


def _sentence(error: Any) -> str:
    where = ".".join(str(step) for step in error["loc"]) or "configuration"
    if error["type"] == "extra_forbidden":
        key = str(error["loc"][-1])
        return f"{where}: unknown key{_nearest(key, _known_keys(error['loc']))}"
    text = error["msg"].removeprefix("Value error, ")
    value = error.get("input")
    shown = f" (found {value!r})" if isinstance(value, str | int | float | bool) else ""
    return f"{where}: {text}{shown}"


def parse(text: str, origin: str = "configuration") -> Config:
    """Raises ConfigError that lists every problem of the text, one a line."""
    try:
        return Config.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{origin} is not valid TOML: {error}") from None
    except ValidationError as error:
        lines = list(dict.fromkeys(_sentence(e) for e in error.errors()))
        raise ConfigError(
            f"{origin} has {len(lines)} problem(s):\n" + "\n".join(f"  - {line}" for line in lines)
        ) from None


def load(path: Path) -> Config:
    try:
        return parse(path.read_text(encoding="utf-8"), str(path))
    except OSError as error:
        raise ConfigError(f"cannot read the configuration {path}: {error.strerror}") from None
