import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class WhyNotRequest(_message.Message):
    __slots__ = ("request", "item_ids")
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    ITEM_IDS_FIELD_NUMBER: _ClassVar[int]
    request: RankRequest
    item_ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, request: _Optional[_Union[RankRequest, _Mapping]] = ..., item_ids: _Optional[_Iterable[str]] = ...) -> None: ...

class WhyNotResponse(_message.Message):
    __slots__ = ("request_id", "bundle_version", "items", "answer")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    BUNDLE_VERSION_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    ANSWER_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    bundle_version: str
    items: _containers.RepeatedCompositeFieldContainer[ItemFate]
    answer: RankResponse
    def __init__(self, request_id: _Optional[str] = ..., bundle_version: _Optional[str] = ..., items: _Optional[_Iterable[_Union[ItemFate, _Mapping]]] = ..., answer: _Optional[_Union[RankResponse, _Mapping]] = ...) -> None: ...

class ItemFate(_message.Message):
    __slots__ = ("item_id", "stage", "cause", "score", "needed", "measure", "position")
    ITEM_ID_FIELD_NUMBER: _ClassVar[int]
    STAGE_FIELD_NUMBER: _ClassVar[int]
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    NEEDED_FIELD_NUMBER: _ClassVar[int]
    MEASURE_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    item_id: str
    stage: str
    cause: str
    score: float
    needed: float
    measure: str
    position: int
    def __init__(self, item_id: _Optional[str] = ..., stage: _Optional[str] = ..., cause: _Optional[str] = ..., score: _Optional[float] = ..., needed: _Optional[float] = ..., measure: _Optional[str] = ..., position: _Optional[int] = ...) -> None: ...

class Change(_message.Message):
    __slots__ = ("item_id", "version", "event_time")
    ITEM_ID_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    EVENT_TIME_FIELD_NUMBER: _ClassVar[int]
    item_id: str
    version: int
    event_time: _timestamp_pb2.Timestamp
    def __init__(self, item_id: _Optional[str] = ..., version: _Optional[int] = ..., event_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class UpsertRequest(_message.Message):
    __slots__ = ("items",)
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[ItemUpsert]
    def __init__(self, items: _Optional[_Iterable[_Union[ItemUpsert, _Mapping]]] = ...) -> None: ...

class ItemUpsert(_message.Message):
    __slots__ = ("change", "values", "bid", "stock")
    class ValuesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: Value
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[Value, _Mapping]] = ...) -> None: ...
    CHANGE_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    BID_FIELD_NUMBER: _ClassVar[int]
    STOCK_FIELD_NUMBER: _ClassVar[int]
    change: Change
    values: _containers.MessageMap[str, Value]
    bid: float
    stock: float
    def __init__(self, change: _Optional[_Union[Change, _Mapping]] = ..., values: _Optional[_Mapping[str, Value]] = ..., bid: _Optional[float] = ..., stock: _Optional[float] = ...) -> None: ...

class WithdrawRequest(_message.Message):
    __slots__ = ("items",)
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[Change]
    def __init__(self, items: _Optional[_Iterable[_Union[Change, _Mapping]]] = ...) -> None: ...

class SetBidsRequest(_message.Message):
    __slots__ = ("items",)
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[ItemBid]
    def __init__(self, items: _Optional[_Iterable[_Union[ItemBid, _Mapping]]] = ...) -> None: ...

class ItemBid(_message.Message):
    __slots__ = ("change", "bid")
    CHANGE_FIELD_NUMBER: _ClassVar[int]
    BID_FIELD_NUMBER: _ClassVar[int]
    change: Change
    bid: float
    def __init__(self, change: _Optional[_Union[Change, _Mapping]] = ..., bid: _Optional[float] = ...) -> None: ...

class SetStockRequest(_message.Message):
    __slots__ = ("items",)
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[ItemStock]
    def __init__(self, items: _Optional[_Iterable[_Union[ItemStock, _Mapping]]] = ...) -> None: ...

class ItemStock(_message.Message):
    __slots__ = ("change", "stock")
    CHANGE_FIELD_NUMBER: _ClassVar[int]
    STOCK_FIELD_NUMBER: _ClassVar[int]
    change: Change
    stock: float
    def __init__(self, change: _Optional[_Union[Change, _Mapping]] = ..., stock: _Optional[float] = ...) -> None: ...

class ChangeResponse(_message.Message):
    __slots__ = ("results", "sequence")
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[ChangeResult]
    sequence: int
    def __init__(self, results: _Optional[_Iterable[_Union[ChangeResult, _Mapping]]] = ..., sequence: _Optional[int] = ...) -> None: ...

class ChangeResult(_message.Message):
    __slots__ = ("item_id", "outcome", "field", "problem")
    class Outcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        OUTCOME_UNSPECIFIED: _ClassVar[ChangeResult.Outcome]
        APPLIED: _ClassVar[ChangeResult.Outcome]
        SUPERSEDED: _ClassVar[ChangeResult.Outcome]
        REFUSED: _ClassVar[ChangeResult.Outcome]
    OUTCOME_UNSPECIFIED: ChangeResult.Outcome
    APPLIED: ChangeResult.Outcome
    SUPERSEDED: ChangeResult.Outcome
    REFUSED: ChangeResult.Outcome
    ITEM_ID_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    FIELD_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    item_id: str
    outcome: ChangeResult.Outcome
    field: str
    problem: str
    def __init__(self, item_id: _Optional[str] = ..., outcome: _Optional[_Union[ChangeResult.Outcome, str]] = ..., field: _Optional[str] = ..., problem: _Optional[str] = ...) -> None: ...

class CatalogStatusRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class CatalogStatus(_message.Message):
    __slots__ = ("bundle_version", "applied_sequence", "stored_sequence", "bundle_items", "changed_items", "hidden_items", "room", "recall", "visible_p99_seconds", "failure", "counted_items", "counters_age_seconds", "counters_failure", "unshown_items", "last_unshown", "uncounted_events", "store_mark")
    BUNDLE_VERSION_FIELD_NUMBER: _ClassVar[int]
    APPLIED_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    STORED_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    BUNDLE_ITEMS_FIELD_NUMBER: _ClassVar[int]
    CHANGED_ITEMS_FIELD_NUMBER: _ClassVar[int]
    HIDDEN_ITEMS_FIELD_NUMBER: _ClassVar[int]
    ROOM_FIELD_NUMBER: _ClassVar[int]
    RECALL_FIELD_NUMBER: _ClassVar[int]
    VISIBLE_P99_SECONDS_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    COUNTED_ITEMS_FIELD_NUMBER: _ClassVar[int]
    COUNTERS_AGE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    COUNTERS_FAILURE_FIELD_NUMBER: _ClassVar[int]
    UNSHOWN_ITEMS_FIELD_NUMBER: _ClassVar[int]
    LAST_UNSHOWN_FIELD_NUMBER: _ClassVar[int]
    UNCOUNTED_EVENTS_FIELD_NUMBER: _ClassVar[int]
    STORE_MARK_FIELD_NUMBER: _ClassVar[int]
    bundle_version: str
    applied_sequence: int
    stored_sequence: int
    bundle_items: int
    changed_items: int
    hidden_items: int
    room: int
    recall: float
    visible_p99_seconds: float
    failure: str
    counted_items: int
    counters_age_seconds: float
    counters_failure: str
    unshown_items: int
    last_unshown: str
    uncounted_events: int
    store_mark: str
    def __init__(self, bundle_version: _Optional[str] = ..., applied_sequence: _Optional[int] = ..., stored_sequence: _Optional[int] = ..., bundle_items: _Optional[int] = ..., changed_items: _Optional[int] = ..., hidden_items: _Optional[int] = ..., room: _Optional[int] = ..., recall: _Optional[float] = ..., visible_p99_seconds: _Optional[float] = ..., failure: _Optional[str] = ..., counted_items: _Optional[int] = ..., counters_age_seconds: _Optional[float] = ..., counters_failure: _Optional[str] = ..., unshown_items: _Optional[int] = ..., last_unshown: _Optional[str] = ..., uncounted_events: _Optional[int] = ..., store_mark: _Optional[str] = ...) -> None: ...

class ScoreRequest(_message.Message):
    __slots__ = ("user_id", "context", "item_ids", "recent_items", "features", "request_id")
    class ContextEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: Value
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[Value, _Mapping]] = ...) -> None: ...
    class FeaturesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: Features
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[Features, _Mapping]] = ...) -> None: ...
    USER_ID_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    ITEM_IDS_FIELD_NUMBER: _ClassVar[int]
    RECENT_ITEMS_FIELD_NUMBER: _ClassVar[int]
    FEATURES_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    user_id: str
    context: _containers.MessageMap[str, Value]
    item_ids: _containers.RepeatedScalarFieldContainer[str]
    recent_items: RecentItems
    features: _containers.MessageMap[str, Features]
    request_id: str
    def __init__(self, user_id: _Optional[str] = ..., context: _Optional[_Mapping[str, Value]] = ..., item_ids: _Optional[_Iterable[str]] = ..., recent_items: _Optional[_Union[RecentItems, _Mapping]] = ..., features: _Optional[_Mapping[str, Features]] = ..., request_id: _Optional[str] = ...) -> None: ...

class Features(_message.Message):
    __slots__ = ("values", "bid")
    class ValuesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: Value
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[Value, _Mapping]] = ...) -> None: ...
    VALUES_FIELD_NUMBER: _ClassVar[int]
    BID_FIELD_NUMBER: _ClassVar[int]
    values: _containers.MessageMap[str, Value]
    bid: float
    def __init__(self, values: _Optional[_Mapping[str, Value]] = ..., bid: _Optional[float] = ...) -> None: ...

class ScoreResponse(_message.Message):
    __slots__ = ("request_id", "bundle_version", "probabilities", "unknown_items", "known_user")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    BUNDLE_VERSION_FIELD_NUMBER: _ClassVar[int]
    PROBABILITIES_FIELD_NUMBER: _ClassVar[int]
    UNKNOWN_ITEMS_FIELD_NUMBER: _ClassVar[int]
    KNOWN_USER_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    bundle_version: str
    probabilities: _containers.RepeatedScalarFieldContainer[float]
    unknown_items: _containers.RepeatedScalarFieldContainer[str]
    known_user: bool
    def __init__(self, request_id: _Optional[str] = ..., bundle_version: _Optional[str] = ..., probabilities: _Optional[_Iterable[float]] = ..., unknown_items: _Optional[_Iterable[str]] = ..., known_user: _Optional[bool] = ...) -> None: ...

class RankRequest(_message.Message):
    __slots__ = ("user_id", "context", "limit", "candidates", "filters", "recent_items", "skip_rerank", "request_id", "skip_reasons", "reasons", "partial_ok", "candidate_list", "features", "placements", "excluded", "ranges", "recent_events")
    class ContextEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: Value
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[Value, _Mapping]] = ...) -> None: ...
    class FiltersEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: Values
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[Values, _Mapping]] = ...) -> None: ...
    class FeaturesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: Features
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[Features, _Mapping]] = ...) -> None: ...
    class ExcludedEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: Values
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[Values, _Mapping]] = ...) -> None: ...
    class RangesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: Range
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[Range, _Mapping]] = ...) -> None: ...
    USER_ID_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    CANDIDATES_FIELD_NUMBER: _ClassVar[int]
    FILTERS_FIELD_NUMBER: _ClassVar[int]
    RECENT_ITEMS_FIELD_NUMBER: _ClassVar[int]
    SKIP_RERANK_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    SKIP_REASONS_FIELD_NUMBER: _ClassVar[int]
    REASONS_FIELD_NUMBER: _ClassVar[int]
    PARTIAL_OK_FIELD_NUMBER: _ClassVar[int]
    CANDIDATE_LIST_FIELD_NUMBER: _ClassVar[int]
    FEATURES_FIELD_NUMBER: _ClassVar[int]
    PLACEMENTS_FIELD_NUMBER: _ClassVar[int]
    EXCLUDED_FIELD_NUMBER: _ClassVar[int]
    RANGES_FIELD_NUMBER: _ClassVar[int]
    RECENT_EVENTS_FIELD_NUMBER: _ClassVar[int]
    user_id: str
    context: _containers.MessageMap[str, Value]
    limit: int
    candidates: _containers.RepeatedScalarFieldContainer[str]
    filters: _containers.MessageMap[str, Values]
    recent_items: RecentItems
    skip_rerank: bool
    request_id: str
    skip_reasons: bool
    reasons: bool
    partial_ok: bool
    candidate_list: CandidateList
    features: _containers.MessageMap[str, Features]
    placements: _containers.RepeatedCompositeFieldContainer[Placement]
    excluded: _containers.MessageMap[str, Values]
    ranges: _containers.MessageMap[str, Range]
    recent_events: RecentEvents
    def __init__(self, user_id: _Optional[str] = ..., context: _Optional[_Mapping[str, Value]] = ..., limit: _Optional[int] = ..., candidates: _Optional[_Iterable[str]] = ..., filters: _Optional[_Mapping[str, Values]] = ..., recent_items: _Optional[_Union[RecentItems, _Mapping]] = ..., skip_rerank: _Optional[bool] = ..., request_id: _Optional[str] = ..., skip_reasons: _Optional[bool] = ..., reasons: _Optional[bool] = ..., partial_ok: _Optional[bool] = ..., candidate_list: _Optional[_Union[CandidateList, _Mapping]] = ..., features: _Optional[_Mapping[str, Features]] = ..., placements: _Optional[_Iterable[_Union[Placement, _Mapping]]] = ..., excluded: _Optional[_Mapping[str, Values]] = ..., ranges: _Optional[_Mapping[str, Range]] = ..., recent_events: _Optional[_Union[RecentEvents, _Mapping]] = ...) -> None: ...

class Placement(_message.Message):
    __slots__ = ("name", "limit", "candidate_list", "filters", "context", "excluded", "ranges")
    class FiltersEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: Values
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[Values, _Mapping]] = ...) -> None: ...
    class ContextEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: Value
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[Value, _Mapping]] = ...) -> None: ...
    class ExcludedEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: Values
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[Values, _Mapping]] = ...) -> None: ...
    class RangesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: Range
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[Range, _Mapping]] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    CANDIDATE_LIST_FIELD_NUMBER: _ClassVar[int]
    FILTERS_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    EXCLUDED_FIELD_NUMBER: _ClassVar[int]
    RANGES_FIELD_NUMBER: _ClassVar[int]
    name: str
    limit: int
    candidate_list: CandidateList
    filters: _containers.MessageMap[str, Values]
    context: _containers.MessageMap[str, Value]
    excluded: _containers.MessageMap[str, Values]
    ranges: _containers.MessageMap[str, Range]
    def __init__(self, name: _Optional[str] = ..., limit: _Optional[int] = ..., candidate_list: _Optional[_Union[CandidateList, _Mapping]] = ..., filters: _Optional[_Mapping[str, Values]] = ..., context: _Optional[_Mapping[str, Value]] = ..., excluded: _Optional[_Mapping[str, Values]] = ..., ranges: _Optional[_Mapping[str, Range]] = ...) -> None: ...

class Range(_message.Message):
    __slots__ = ("at_least", "at_most")
    AT_LEAST_FIELD_NUMBER: _ClassVar[int]
    AT_MOST_FIELD_NUMBER: _ClassVar[int]
    at_least: float
    at_most: float
    def __init__(self, at_least: _Optional[float] = ..., at_most: _Optional[float] = ...) -> None: ...

class CandidateList(_message.Message):
    __slots__ = ("item_ids",)
    ITEM_IDS_FIELD_NUMBER: _ClassVar[int]
    item_ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, item_ids: _Optional[_Iterable[str]] = ...) -> None: ...

class Value(_message.Message):
    __slots__ = ("text", "integer", "number", "flag", "list")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    INTEGER_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    FLAG_FIELD_NUMBER: _ClassVar[int]
    LIST_FIELD_NUMBER: _ClassVar[int]
    text: str
    integer: int
    number: float
    flag: bool
    list: ValueList
    def __init__(self, text: _Optional[str] = ..., integer: _Optional[int] = ..., number: _Optional[float] = ..., flag: _Optional[bool] = ..., list: _Optional[_Union[ValueList, _Mapping]] = ...) -> None: ...

class ValueList(_message.Message):
    __slots__ = ("values",)
    VALUES_FIELD_NUMBER: _ClassVar[int]
    values: _containers.RepeatedCompositeFieldContainer[Value]
    def __init__(self, values: _Optional[_Iterable[_Union[Value, _Mapping]]] = ...) -> None: ...

class Values(_message.Message):
    __slots__ = ("values",)
    VALUES_FIELD_NUMBER: _ClassVar[int]
    values: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, values: _Optional[_Iterable[str]] = ...) -> None: ...

class RecentItems(_message.Message):
    __slots__ = ("item_ids",)
    ITEM_IDS_FIELD_NUMBER: _ClassVar[int]
    item_ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, item_ids: _Optional[_Iterable[str]] = ...) -> None: ...

class RecentEvents(_message.Message):
    __slots__ = ("times", "columns")
    class ColumnsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: Values
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[Values, _Mapping]] = ...) -> None: ...
    TIMES_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    times: _containers.RepeatedScalarFieldContainer[float]
    columns: _containers.MessageMap[str, Values]
    def __init__(self, times: _Optional[_Iterable[float]] = ..., columns: _Optional[_Mapping[str, Values]] = ...) -> None: ...

class RankResponse(_message.Message):
    __slots__ = ("request_id", "bundle_version", "items", "stages", "unknown_candidates", "known_user", "bundle_age_seconds", "degraded", "placements")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    BUNDLE_VERSION_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    STAGES_FIELD_NUMBER: _ClassVar[int]
    UNKNOWN_CANDIDATES_FIELD_NUMBER: _ClassVar[int]
    KNOWN_USER_FIELD_NUMBER: _ClassVar[int]
    BUNDLE_AGE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    DEGRADED_FIELD_NUMBER: _ClassVar[int]
    PLACEMENTS_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    bundle_version: str
    items: _containers.RepeatedCompositeFieldContainer[RankedItem]
    stages: _containers.RepeatedCompositeFieldContainer[StageReport]
    unknown_candidates: _containers.RepeatedScalarFieldContainer[str]
    known_user: bool
    bundle_age_seconds: float
    degraded: bool
    placements: _containers.RepeatedCompositeFieldContainer[PlacementResponse]
    def __init__(self, request_id: _Optional[str] = ..., bundle_version: _Optional[str] = ..., items: _Optional[_Iterable[_Union[RankedItem, _Mapping]]] = ..., stages: _Optional[_Iterable[_Union[StageReport, _Mapping]]] = ..., unknown_candidates: _Optional[_Iterable[str]] = ..., known_user: _Optional[bool] = ..., bundle_age_seconds: _Optional[float] = ..., degraded: _Optional[bool] = ..., placements: _Optional[_Iterable[_Union[PlacementResponse, _Mapping]]] = ...) -> None: ...

class PlacementResponse(_message.Message):
    __slots__ = ("name", "items", "stages", "unknown_candidates", "degraded")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    STAGES_FIELD_NUMBER: _ClassVar[int]
    UNKNOWN_CANDIDATES_FIELD_NUMBER: _ClassVar[int]
    DEGRADED_FIELD_NUMBER: _ClassVar[int]
    name: str
    items: _containers.RepeatedCompositeFieldContainer[RankedItem]
    stages: _containers.RepeatedCompositeFieldContainer[StageReport]
    unknown_candidates: _containers.RepeatedScalarFieldContainer[str]
    degraded: bool
    def __init__(self, name: _Optional[str] = ..., items: _Optional[_Iterable[_Union[RankedItem, _Mapping]]] = ..., stages: _Optional[_Iterable[_Union[StageReport, _Mapping]]] = ..., unknown_candidates: _Optional[_Iterable[str]] = ..., degraded: _Optional[bool] = ...) -> None: ...

class RankedItem(_message.Message):
    __slots__ = ("item_id", "probability", "score", "price", "channel", "stage_scores", "reasons")
    class StageScoresEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    ITEM_ID_FIELD_NUMBER: _ClassVar[int]
    PROBABILITY_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    PRICE_FIELD_NUMBER: _ClassVar[int]
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    STAGE_SCORES_FIELD_NUMBER: _ClassVar[int]
    REASONS_FIELD_NUMBER: _ClassVar[int]
    item_id: str
    probability: float
    score: float
    price: float
    channel: str
    stage_scores: _containers.ScalarMap[str, float]
    reasons: _containers.RepeatedCompositeFieldContainer[Reason]
    def __init__(self, item_id: _Optional[str] = ..., probability: _Optional[float] = ..., score: _Optional[float] = ..., price: _Optional[float] = ..., channel: _Optional[str] = ..., stage_scores: _Optional[_Mapping[str, float]] = ..., reasons: _Optional[_Iterable[_Union[Reason, _Mapping]]] = ...) -> None: ...

class Reason(_message.Message):
    __slots__ = ("field", "logit_change")
    FIELD_FIELD_NUMBER: _ClassVar[int]
    LOGIT_CHANGE_FIELD_NUMBER: _ClassVar[int]
    field: str
    logit_change: float
    def __init__(self, field: _Optional[str] = ..., logit_change: _Optional[float] = ...) -> None: ...

class StageReport(_message.Message):
    __slots__ = ("name", "candidates_in", "candidates_out", "microseconds", "status", "cause", "fallback", "age_seconds")
    class Status(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        STATUS_UNSPECIFIED: _ClassVar[StageReport.Status]
        COMPLETE: _ClassVar[StageReport.Status]
        DEGRADED: _ClassVar[StageReport.Status]
        SKIPPED: _ClassVar[StageReport.Status]
    STATUS_UNSPECIFIED: StageReport.Status
    COMPLETE: StageReport.Status
    DEGRADED: StageReport.Status
    SKIPPED: StageReport.Status
    class Fallback(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        NONE: _ClassVar[StageReport.Fallback]
        POPULAR: _ClassVar[StageReport.Fallback]
        TWO_TOWER_SCORE: _ClassVar[StageReport.Fallback]
        PREVIOUS_ORDER: _ClassVar[StageReport.Fallback]
        ORGANIC_ORDER: _ClassVar[StageReport.Fallback]
        WITHOUT_REASONS: _ClassVar[StageReport.Fallback]
        BUNDLE_ROW: _ClassVar[StageReport.Fallback]
    NONE: StageReport.Fallback
    POPULAR: StageReport.Fallback
    TWO_TOWER_SCORE: StageReport.Fallback
    PREVIOUS_ORDER: StageReport.Fallback
    ORGANIC_ORDER: StageReport.Fallback
    WITHOUT_REASONS: StageReport.Fallback
    BUNDLE_ROW: StageReport.Fallback
    NAME_FIELD_NUMBER: _ClassVar[int]
    CANDIDATES_IN_FIELD_NUMBER: _ClassVar[int]
    CANDIDATES_OUT_FIELD_NUMBER: _ClassVar[int]
    MICROSECONDS_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    FALLBACK_FIELD_NUMBER: _ClassVar[int]
    AGE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    name: str
    candidates_in: int
    candidates_out: int
    microseconds: int
    status: StageReport.Status
    cause: str
    fallback: StageReport.Fallback
    age_seconds: float
    def __init__(self, name: _Optional[str] = ..., candidates_in: _Optional[int] = ..., candidates_out: _Optional[int] = ..., microseconds: _Optional[int] = ..., status: _Optional[_Union[StageReport.Status, str]] = ..., cause: _Optional[str] = ..., fallback: _Optional[_Union[StageReport.Fallback, str]] = ..., age_seconds: _Optional[float] = ...) -> None: ...

class RecordEventsRequest(_message.Message):
    __slots__ = ("events",)
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    events: _containers.RepeatedCompositeFieldContainer[Event]
    def __init__(self, events: _Optional[_Iterable[_Union[Event, _Mapping]]] = ...) -> None: ...

class Event(_message.Message):
    __slots__ = ("event_id", "kind", "event_time", "user_id", "item_id", "request_id", "position", "bid", "columns")
    class Kind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        KIND_UNSPECIFIED: _ClassVar[Event.Kind]
        IMPRESSION: _ClassVar[Event.Kind]
        CLICK: _ClassVar[Event.Kind]
        CONVERSION: _ClassVar[Event.Kind]
    KIND_UNSPECIFIED: Event.Kind
    IMPRESSION: Event.Kind
    CLICK: Event.Kind
    CONVERSION: Event.Kind
    class ColumnsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: Value
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[Value, _Mapping]] = ...) -> None: ...
    EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    EVENT_TIME_FIELD_NUMBER: _ClassVar[int]
    USER_ID_FIELD_NUMBER: _ClassVar[int]
    ITEM_ID_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    BID_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    event_id: str
    kind: Event.Kind
    event_time: _timestamp_pb2.Timestamp
    user_id: str
    item_id: str
    request_id: str
    position: int
    bid: float
    columns: _containers.MessageMap[str, Value]
    def __init__(self, event_id: _Optional[str] = ..., kind: _Optional[_Union[Event.Kind, str]] = ..., event_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., user_id: _Optional[str] = ..., item_id: _Optional[str] = ..., request_id: _Optional[str] = ..., position: _Optional[int] = ..., bid: _Optional[float] = ..., columns: _Optional[_Mapping[str, Value]] = ...) -> None: ...

class RecordEventsResponse(_message.Message):
    __slots__ = ("recorded", "repeats", "errors")
    RECORDED_FIELD_NUMBER: _ClassVar[int]
    REPEATS_FIELD_NUMBER: _ClassVar[int]
    ERRORS_FIELD_NUMBER: _ClassVar[int]
    recorded: int
    repeats: int
    errors: _containers.RepeatedCompositeFieldContainer[EventError]
    def __init__(self, recorded: _Optional[int] = ..., repeats: _Optional[int] = ..., errors: _Optional[_Iterable[_Union[EventError, _Mapping]]] = ...) -> None: ...

class EventError(_message.Message):
    __slots__ = ("index", "event_id", "field", "problem")
    INDEX_FIELD_NUMBER: _ClassVar[int]
    EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    FIELD_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    index: int
    event_id: str
    field: str
    problem: str
    def __init__(self, index: _Optional[int] = ..., event_id: _Optional[str] = ..., field: _Optional[str] = ..., problem: _Optional[str] = ...) -> None: ...
