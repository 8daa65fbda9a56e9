"""The stages of a request: retrieve, pre-rank, re-rank, and the server around them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args

from pydantic import Field, field_validator, model_validator

from contracts.config.section import ChannelName, Section
from contracts.nearest import did_you_mean

OWN = ("two_tower", "item_to_item")  # channels that every log with items has, beside popularity
ENCODERS = ("sasrec", "esasrec", "hstu")  # channels that read events in their order
TIME = "time"  # among `retrieve.events`: when each was
BID, STOCK, AGE = "bid", "stock", "age"  # numbers that requests name so, whatever the columns are called


class Channel(Section):
    """A model of docs/concepts/retrieval.md as a further channel of retrieval: trained by `sluice train`.

    Where a channel is given no quota, the quotas of all such channels, of two_tower and of item_to_item are chosen on
    the validation window; popularity fills what is left.
    """

    quota: int | None = Field(None, ge=0, description="items that it brings; none given: chosen on validation")
    settings: dict[str, Any] = Field({}, description="of the model, by name")


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
    range_fields: tuple[str, ...] = Field(
        (), description="item columns of numbers or times (as seconds since 1970, UTC) a request may ask ranges of"
    )
    created_field: str | None = Field(
        None, description="item column that says when an item came to be: a request may ask ranges of `age`, in seconds"
    )
    channels: dict[str, Channel] = Field({}, description="further channels by the name of their model")
    events: tuple[str, ...] = Field(
        (), description="what sequence encoders read of an event beside its item: `time`, columns of the log (its "
        "kind, a rating, a device)"
    )
    fresh_requests: bool = Field(
        False, description="whether requests bring recent_items up to the moment: quotas are then chosen by such ones"
    )
    cold: Literal["two_tower", "popularity"] | None = Field(
        None, description="what a requester of whom nothing is known gets: what the towers make of the context, then "
        "popular items, or popular items alone; none given: what finds more of the validation window's clicks"
    )
    repeat: bool | None = Field(
        None, description="whether a user's recent items are retrieved again; none given: as label.repeat says"
    )

    @field_validator("channels")
    @classmethod
    def _known(cls, channels: dict[str, Channel]) -> dict[str, Channel]:
        names = get_args(ChannelName)
        for name in channels:
            if name not in names:
                raise ValueError(f"no channel is called {name!r}{did_you_mean(name, names)}; there are "
                                 f"{', '.join(names)}")
        return channels

    @field_validator("events")
    @classmethod
    def _once(cls, events: tuple[str, ...]) -> tuple[str, ...]:
        twice = [name for name in events if events.count(name) > 1]
        if twice:
            raise ValueError(f"{twice[0]!r} is named twice")
        return events

    @model_validator(mode="after")
    def _events_are_read(self) -> Retrieve:
        if self.events and not set(ENCODERS) & self.channels.keys():
            raise ValueError(f"retrieve.events is read by sequence encoders, and none of {', '.join(ENCODERS)} is "
                             "in retrieve.channels; add one, or leave retrieve.events out")
        return self

    @model_validator(mode="after")
    def _own_names(self) -> Retrieve:
        for name in (BID, STOCK, AGE):
            if name in (*self.range_fields, self.created_field):
                raise ValueError(f"retrieve: a range of {name!r} is about the server's own; derive the column under "
                                 "another name")
        return self

    @property
    def numbers(self) -> tuple[str, ...]:
        """Item columns of numbers and times."""
        return tuple(dict.fromkeys((*self.range_fields, *([self.created_field] if self.created_field else []))))

    @property
    def event_columns(self) -> tuple[str, ...]:
        """Columns of the log whose values go with the items of a history."""
        return tuple(name for name in self.events if name != TIME)

    @property
    def event_times(self) -> bool:
        """Whether the gaps between the events of a history are read."""
        return TIME in self.events

    @property
    def item_columns(self) -> dict[str, str]:
        """Item columns that are kept beside the fields, and which key of this section names each first."""
        created = [self.created_field] if self.created_field else []
        named = {"filter_fields": self.filter_fields, "range_fields": self.range_fields, "created_field": created}
        return {name: f"retrieve.{key}" for key, names in reversed(named.items()) for name in names}

    @property
    def open_quotas(self) -> tuple[str, ...]:
        """Channels whose quotas are chosen on validation; none where every one of `channels` has its own."""
        named = tuple(name for name, channel in self.channels.items() if channel.quota is None)
        return (*OWN, *named) if named else ()

    def with_quotas(self, quotas: Mapping[str, int]) -> Retrieve:
        """With those that are open as given; a channel without one has an equal share of the candidates."""
        share = max(self.candidates // (len(self.channels) + 2), 1)
        channels = {
            name: channel.model_copy(update={"quota": quotas.get(name, share)}) if channel.quota is None else channel
            for name, channel in self.channels.items()
        }
        changed: dict[str, Any] = {"channels": channels}
        changed |= {name: quotas.get(name, share) for name in OWN if name in self.open_quotas}
        return self.model_copy(update=changed)


class Prerank(Section):
    """Which score cuts the retrieved candidates to `keep`, and how FSCD (models/preranking/fscd.py) is trained.

    kind          the score
    fscd          a network over the fields that pay for themselves
    towers        a small MLP over the two towers' vectors
    dot_product   the two towers' inner product, as retrieval left it
    """

    kind: Literal["fscd", "towers", "dot_product"] | None = Field(
        None, description="none given: fscd where the log has items and times, else towers"
    )
    keep: int = Field(200, ge=1, description="handed to the ranker")
    hidden: tuple[int, ...] = Field((64, 32), min_length=1, description="widths of the MLP")
    item_side: Literal["precomputed", "on_request"] = Field(
        "precomputed", description="where the item half of the first layer comes from: the bundle, or the request"
    )
    embedding_dim: int = Field(8, ge=1, description="width of a value's vector")
    requests: int = Field(1000, ge=1, description="requests of the training window whose candidates are learned from")
    evaluation_requests: int = Field(150, ge=1, description="requests of validation, and of test, for evaluation")
    list_length: int = Field(128, ge=2, description="candidates drawn of each request to learn from")
    batch_size: int = Field(1024, ge=2, description="candidates per step; the penalty does not depend on it")
    warm_steps: int = Field(150, ge=0, description="steps with gates and no penalty")
    sweep_steps: int = Field(60, ge=1, description="steps with gates at each penalty")
    tune_steps: int = Field(60, ge=0, description="steps without gates for each point of the frontier")
    final_steps: int = Field(300, ge=0, description="further steps without gates for the chosen point")
    learning_rate: float = Field(5e-3, gt=0)
    gate_learning_rate: float = Field(5e-2, gt=0, description="of the gates' logits")
    penalties: tuple[float, ...] = Field(
        (0.01, 0.03, 0.06, 0.12, 0.25, 0.5, 1.2, 3.0), min_length=1,
        description="nats per sample that all fields together are charged; over the sum of their c it is reg_scale",
    )
    click_loss_weight: float = Field(1.0, ge=0, description="weight of the click labels' log loss")
    distillation: float = Field(1.0, ge=0, description="weight of the log loss against the ranker's probabilities")
    consistency: float = Field(1.0, ge=0, description="weight of the list-wise loss against the ranker's order")
    recall_at: int = Field(10, ge=1, description="m of the recall of the ranker's top m")
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
    """Limits of one request to the server and of its queue, and the rows that prove its parity with training."""

    default_limit: int = Field(10, ge=1)
    max_limit: int = Field(100, ge=1, description="most items of one answer")
    max_candidates: int = Field(2000, ge=1, description="most explicit candidates of one request")
    max_placements: int = Field(8, ge=1, description="most placements of one request")
    max_fields: int = Field(256, ge=1, description="most context values, filters, or values that describe one item")
    max_values: int = Field(
        200, ge=1, description="most values of one filter or list, and most recent items, of one request"
    )
    max_events: int = Field(1000, ge=1, description="most events of one `RecordEvents`")
    max_text: int = Field(512, ge=1, description="most characters of one id, name or value in a request")
    max_request_kb: int = Field(1024, ge=1, le=65_536, description="most kibibytes of one request; it is not read else")
    deadline_ms: int = Field(100, ge=1, description="used where the caller sets none")
    max_deadline_ms: int = Field(5000, ge=1, description="a longer deadline of a caller counts as this one")
    reserve_ms: float = Field(
        3.0, ge=0, description="of every deadline kept for the answer's way back, besides what writing it takes"
    )
    user_store_ms: float = Field(
        20.0, gt=0, le=60_000, description="a store of users has so long to answer; then the bundle's row does"
    )
    max_queue: int = Field(
        64, ge=1, le=1_000_000, description="requests that may wait in one process; more are refused at once"
    )
    queue_ms: int = Field(2000, ge=1, description="a request that waits longer is refused")
    overload: Literal["degrade", "refuse"] = Field(
        "refuse", description="while more comes than can be answered: fewer stages for those that take a partial "
        "answer, and refusals beyond that, or whole answers for fewer and refusals for the others"
    )
    tenant_shares: dict[str, float] = Field(
        {}, description="time of a caller who names itself in the metadata `sluice-tenant`; 1 where not given"
    )
    parity_rows: int = Field(256, ge=1, description="kept in the bundle")
    item_part_mb: int = Field(
        2048, ge=0, description="what the items add to the ranker's first layer is kept in the bundle up to this size "
        "(4 bytes x items x `train.hidden[0]`), and computed per request beyond"
    )

    @model_validator(mode="after")
    def _positive_shares(self) -> Serve:
        wrong = next((name for name, share in self.tenant_shares.items() if not share > 0), None)
        if wrong is not None:
            raise ValueError(f"serve.tenant_shares.{wrong} is {self.tenant_shares[wrong]}, must be above 0; leave the "
                             "tenant out for a share of 1")
        return self

    def seconds(self, left: float | None) -> float:
        """That a call may take which has so many `left` to its deadline, None where it has none."""
        return min(self.deadline_ms / 1000 if left is None else left, self.max_deadline_ms / 1000)
