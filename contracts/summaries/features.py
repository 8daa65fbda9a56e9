"""What `sluice features` did: OUT/features/summary.json."""

from __future__ import annotations

from contracts.summaries.summary import Record, Summary


class DayEvents(Record):
    """Events of one day, and how many of them are labelled 1."""
    events: int
    positives: int


class TableRows(Record):
    """Of users or items: rows_in = rows + duplicates + quarantined."""

    rows_in: int
    rows: int
    duplicates: int
    quarantined: int


class ClickRows(Record):
    """`reasons` counts the quarantined rows; `unknown_impression`: clicks on nothing that was shown, of a whole log."""

    rows_in: int
    quarantined: int
    reasons: dict[str, int]
    duplicates: int
    unknown_impression: int | None = None


class Ingested(Record):
    """rows_in = events + duplicates + quarantined. `written`: days that are new or have changed; `undated`: rows
    without a readable day, where one day was asked for."""

    rows_in: int
    duplicates: int
    quarantined: int
    reasons: dict[str, int]
    events: int
    positives: int
    days: dict[str, DayEvents]
    written: tuple[str, ...]
    undated: int | None = None
    clicks: ClickRows | None = None
    users: TableRows | None = None
    items: TableRows | None = None


class DrawnRows(Record):
    """What was drawn for a log of positives alone: `negatives` rows for `positives` of its takes, of a catalogue that
    has `items` in the end. The other takes teach histories alone: `newcomers` were the first of their item, `repeats`
    not the first of that item by that user, and for `exhausted` ones the user had taken every item there was. Of the
    drawn rows `candidates` is the share that was to come from a retrieval, and `retrieved` did."""

    positives: int
    negatives: int
    newcomers: int
    repeats: int
    exhausted: int
    items: int
    per_positive: int
    popularity: float
    candidates: float = 0.0
    retrieved: int = 0
    written: tuple[str, ...]


class FeatureRows(Record):
    """`prior_rate` smooths the rate counters, 0 without any; `written`: days that are new or have changed."""

    rows: int
    rows_of_day: dict[str, int]
    prior_rate: float
    written: tuple[str, ...]


class WindowRows(Record):
    """Of one window, embargo left out, before negatives are thinned."""

    rows: int
    positives: int
    users: int | None = None


class ExampleRows(Record):
    """Of one window as encoded; `days` counts its days, `written` names those that are new or have changed."""

    rows: int
    positives: int
    days: int
    content_hash: str
    written: tuple[str, ...]


class OnlineTables(Record):
    """Rows of the served tables as of `published_at` (ISO 8601, UTC)."""

    published_at: str
    users: int | None = None
    items: int | None = None


class FeaturesSummary(Summary):
    """`windows`: [start, end) of each as ISO 8601, or its rows in a table without times; of a single day None, as is
    `check`. `drawn` is there of a log of positives alone. `vocabularies`: numbers of keys; `seconds`: of each part,
    "NAME again" where crosses were encoded later. `crosses_digest`: of what the crosses were fitted by, None where
    their encoding was kept."""

    name: str
    day: str | None = None
    until: str | None = None
    ingest: Ingested
    windows: dict[str, tuple[str, str]] | dict[str, int] | None = None
    drawn: DrawnRows | None = None
    features: FeatureRows
    check: dict[str, WindowRows] | None = None
    vocabularies: dict[str, int]
    examples: dict[str, ExampleRows]
    crosses: tuple[str, ...]
    crosses_digest: str | None = None
    parity_rows: int
    online: OnlineTables | None = None
    seconds: dict[str, float]
