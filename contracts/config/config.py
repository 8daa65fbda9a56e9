"""One run's TOML as frozen pydantic models.

Unknown keys are refused with the nearest right one, and all errors of a file come in one message. `{data}` in a path
stands for the folder given with `--data`, or for the file's own `data` key.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import BaseModel, Field, ValidationError, model_validator

from contracts.config.days import Gate, Quality, Watch
from contracts.config.federated import Federated
from contracts.config.fields import FieldConfig
from contracts.config.log import Label, Log, Source, SparkSettings, Table
from contracts.config.renamed import RENAMED
from contracts.config.rules import Rule, rule_problems
from contracts.config.section import Section
from contracts.config.simulation import Simulation
from contracts.config.stages import Prerank, Rerank, Retrieve, Serve
from contracts.config.training import Crosses, PairRates, Train
from contracts.config.windows import Features, Windows
from contracts.duration import label
from contracts.errors import ConfigError
from contracts.nearest import did_you_mean


class Config(Section):
    """The whole of one file. The sections' own checks come first, then those of sections against each other."""
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
    pair_rates: PairRates = PairRates()
    train: Train = Train()
    crosses: Crosses = Crosses()
    retrieve: Retrieve = Retrieve()
    prerank: Prerank = Prerank()
    rerank: Rerank = Rerank()
    rules: tuple[Rule, ...] = Field((), description="business rules")
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
        """Seconds left out at the end of a window: the label window, unless the configuration says more."""
        return self.label_window if self.windows.embargo is None else self.windows.embargo

    def path(self, source: Source, data: str | Path | None = None) -> str:
        """The source's path with `{data}` filled in, of any scheme: s3a://bucket/logs stays what it is.

        Raises ConfigError when there is nothing to fill in.
        """
        if "{data}" not in source.path:
            return source.path
        folder = str(data) if data else self.data
        if folder is None:
            raise ConfigError(
                f"{source.path!r} needs a data folder: give --data DIR or set `data` in the configuration"
            )
        return source.path.replace("{data}/", folder.rstrip("/") + "/").replace("{data}", folder)

    @model_validator(mode="after")
    def _consistent(self) -> Config:
        problems = [
            *self.field_problems(), *self._counter_problems(), *self._role_problems(), *self._positives_problems(),
            *self._pair_problems(), *self._stage_problems(),
            *rule_problems(self.rules, self.retrieve, [f.name for f in self.fields if f.side == "context"]),
        ]
        if problems:
            raise ValueError("; ".join(problems))
        return self

    def field_problems(self) -> list[str]:
        """A sentence for each name defined twice and each reference to a field that is not there."""
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
                    problems.append(f"cross {field.name!r}: part {part!r} is no field{did_you_mean(base, [*features])}")
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
        if self.pair_rates.pairs and self.log.event_time is None:
            problems.append("pair_rates.pairs need a window of their own in time; set log.event_time")
        for pair in self.pair_rates.pairs:
            where = f"pair_rates.pairs {list(pair)}"
            if len({part.partition("#")[0] for part in pair}) < 2 or self.pair_rates.pairs.count(pair) > 1:
                problems.append(f"{where}: a pair takes two different fields, once")
            for part in pair:
                base, _, bins = part.partition("#")
                if base not in by_name:
                    problems.append(f"{where}: {part!r} is no field{did_you_mean(base, list(by_name))}")
                elif bins and (not bins.isdigit() or int(bins) not in by_name[base].bins()):
                    problems.append(f"{where}: {base!r} has no granularity {bins!r}")
                elif not bins and by_name[base].kind not in ("categorical", "multi_valued"):
                    problems.append(f"{where}: {base!r} has no values of its own; name its bins, as in {base}#10")
        if self.pair_rates.initialise_embeddings and self.pair_rates.dim != self.train.embedding_dim:
            problems.append(
                f"pair_rates.initialise_embeddings needs vectors as wide as the embeddings: pair_rates.dim is "
                f"{self.pair_rates.dim}, train.embedding_dim {self.train.embedding_dim}"
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

    def _positives_problems(self) -> list[str]:
        """What a log of positives alone must tell, and what says nothing in it."""
        if not self.label.positives_only:
            return []
        why = "label.positives_only draws, for every positive, items that existed then and were not taken by the user"
        problems = [f"{why}; set log.{role}" for role in ("user_id", "item_id", "event_time")
                    if getattr(self.log, role) is None]
        problems += [f"log.{role} is about what was shown, and a log of positives alone does not tell; leave it out"
                     for role in ("position", "bid") if getattr(self.log, role) is not None]
        if self.features.negative_rate < 1:
            problems.append("features.negative_rate keeps a share of the rows that label.positives_only has drawn; "
                            "draw fewer with label.negatives.per_positive")
        problems += [f"counter {field.name!r}: a rate of positives alone is always 1; set statistics = ['count']"
                     for field in self.fields if field.kind == "counter" and "rate" in field.statistics]
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
        if self.retrieve.channels and not (self.log.user_id and self.log.item_id and self.log.event_time):
            problems.append("retrieve.channels learn from what each user did, in its order: set log.user_id, "
                            "log.item_id and log.event_time, or leave them out")
        if self.prerank.recall_at > self.prerank.keep:
            problems.append(f"prerank.recall_at {self.prerank.recall_at} exceeds prerank.keep {self.prerank.keep}")
        if self.prerank.keep > self.retrieve.candidates:
            problems.append(f"prerank.keep {self.prerank.keep} exceeds retrieve.candidates {self.retrieve.candidates}")
        if self.serve.default_limit > self.serve.max_limit:
            problems.append(f"serve.default_limit {self.serve.default_limit} exceeds max_limit {self.serve.max_limit}")
        if self.serve.max_limit > self.prerank.keep:
            problems.append(f"serve.max_limit {self.serve.max_limit} exceeds prerank.keep {self.prerank.keep}")
        if self.serve.reserve_ms >= 1000 * self.serve.seconds(None):
            problems.append(f"serve.reserve_ms {self.serve.reserve_ms:g} leaves nothing of serve.deadline_ms "
                            f"{self.serve.deadline_ms} and max_deadline_ms {self.serve.max_deadline_ms}: no request "
                            "could be answered")
        return problems


def _known_keys(location: tuple[int | str, ...]) -> list[str]:
    """Keys allowed in the section that `location` (a pydantic error location) lies in."""
    model: Any = Config
    for key in location[:-1]:
        if isinstance(key, int):
            continue
        info = model.model_fields.get(key) if isinstance(model, type) and issubclass(model, BaseModel) else None
        if info is None:
            continue
        options = [info.annotation, *get_args(info.annotation)]
        model = next((o for o in options if isinstance(o, type) and issubclass(o, BaseModel)), model)
    return list(model.model_fields)


def _sentence(error: Any) -> str:
    where = ".".join(str(key) for key in error["loc"]) or "configuration"
    if error["type"] == "extra_forbidden":
        key = str(error["loc"][-1])
        if where in RENAMED:
            return f"{where}: is called {RENAMED[where]} now; rename it"
        return f"{where}: unknown key{did_you_mean(key, _known_keys(error['loc']))}"
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
    """As `parse`. Raises ConfigError for a file that cannot be read, too."""
    try:
        return parse(path.read_text(encoding="utf-8"), str(path))
    except OSError as error:
        raise ConfigError(f"cannot read the configuration {path}: {error.strerror}") from None
