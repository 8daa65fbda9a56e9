"""Where each job leaves its files below one output folder, and the reserved column and file names in them.

OUT/
  raw/                      simulated log (demo only): impressions, clicks, users, items
  truth/                    simulated truth, read by nothing but the report
  ingest/events/day=D/      clean, deduplicated, labelled events
  ingest/users/ items/      clean tables, one row per key (`_user`, `_item` as strings)
  ingest/quarantine/        malformed rows with their reason
  drawn/day=D/              of a log of positives alone: its examples, each positive with the rows drawn for it
  ingest/windows.json       {window: [start, end]} as resolved, ISO 8601, UTC; shares and seed without times
  features/day=D/           point-in-time raw features
  leaks/                    what the leak check found
  crosses/                  crosses.json: the cross features found, which become fields; adjacency, report figures
  encoding/                 feature_spec.json, vocabularies/
  examples/WINDOW/day=D/    encoded examples of train, validation, test
  pair_rates/               co-occurrence graph (nodes/, edges/, manifest.json) and what was pre-trained on it
  online/users/ items/      raw features of every user and item as of the last publish
  parity/                   sampled rows: raw features and encoded ids
  candidates/               item table as of the test window's start, and what retrieval returns for past requests
  prerank/                  the pre-ranker's frontier, choice and comparison
  quality/day=D/            profile of the day's features, the gate's verdict, the picture of a refusal
  channels/NAME/            a further channel of retrieval: weights, settings, item keys, parity rows, summary.json
  models/NAME/              weights, calibration, test logits, summary.json
  tuning/                   the search of settings: Optuna's study, tuned.toml
  bundle/                   what `sluice serve` takes
  summary.json              one per job, beside its output
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

# Reserved columns of events, features and examples. They start with an underscore, configured fields never do.
LABEL, LABEL_TIME = "_label", "_label_time"  # float 0/1; when the label became known
CLICK_TIME = "_click_time"  # when the click itself was, where the log tells
USER, ITEM, REQUEST = "_user", "_item", "_request"  # string keys as in the log; absent roles have no column
TIME, KNOWN = "_time", "_known"  # UTC timestamps (microseconds)
POSITION, BID = "_position", "_bid"
DRAWS = "_draws"  # of positives alone: how many of the rows drawn for one positive are expected to be the row's item
ROW = "_row"  # int64 hash of the event key: stable row id
TEST_ROW = "_test"  # tables without times: whether windows.test_where holds
DAY = "day"  # partition: event date, UTC, YYYY-MM-DD; "all" where the log has no times
FRESH = "@fresh"  # suffix of event-fresh twins
WINDOWS = ("train", "validation", "test")
PUBLISHED_AT = "_published_at"  # online tables: the publish the row belongs to
READ_UNTIL = "_read_until"  # online tables: when the last click became known that they hold, no later than the publish
BID_AT = "_bid_at"  # online items: the time of the impression that the bid is of, int64 microseconds
SHOWN, CLICKS = "_shown", "_clicks"  # online items: closed impressions and their clicks, of all time
RECENT_ITEMS = "_recent_items"  # online users: the items clicked last, newest first
RECENT_TIMES, RECENT_VALUES = "_recent_times", "_recent_value_"  # of them: int64 microseconds; text, before a column
ASKED = "_asked"  # parity rows of a channel: when the history was asked for, in microseconds
ID_PREFIX = "id:"  # parity rows: `id:SLOT` holds the encoded ids of a slot

# Files of one model's folder.
WEIGHTS, CALIBRATION = "weights.safetensors", "calibration.safetensors"
TEST_LOGITS, TEST_ROWS = "test_logits.npy", "test_rows.npy"  # float32 [B] and the `_row` of each
VALIDATION_LOGITS = "validation_logits.npy"  # float32 [B], in file order

# Files of one channel's folder, and columns of its parity rows: keys of the model's best items, and their scores.
CHANNEL_SETTINGS, CHANNEL_PARITY = "settings.json", "parity.parquet"
BEST_ITEMS, SCORES = "_best_items", "_scores"


@dataclass(frozen=True)
class Artifacts:
    """The places of the head's tree below the folder `out`."""
    out: Path

    @property
    def raw(self) -> Path:
        return self.out / "raw"

    @property
    def truth(self) -> Path:
        return self.out / "truth"

    @property
    def events(self) -> Path:
        return self.out / "ingest" / "events"

    @property
    def users(self) -> Path:
        return self.out / "ingest" / "users"

    @property
    def items(self) -> Path:
        return self.out / "ingest" / "items"

    @property
    def drawn(self) -> Path:
        return self.out / "drawn"

    @property
    def windows(self) -> Path:
        return self.out / "ingest" / "windows.json"

    @property
    def quarantine(self) -> Path:
        return self.out / "ingest" / "quarantine"

    @property
    def features(self) -> Path:
        return self.out / "features"

    @property
    def prior(self) -> Path:
        """The rate that smooths every rate counter, where one asks for it."""
        return self.features / "_prior.json"

    @property
    def leaks(self) -> Path:
        return self.out / "leaks"

    @property
    def quality(self) -> Path:
        return self.out / "quality"

    @property
    def crosses(self) -> Path:
        return self.out / "crosses"

    @property
    def encoding(self) -> Path:
        return self.out / "encoding"

    def examples(self, window: str) -> Path:
        """`window`: one of WINDOWS."""
        return self.out / "examples" / window

    @property
    def pair_rates(self) -> Path:
        return self.out / "pair_rates"

    @property
    def online_users(self) -> Path:
        return self.out / "online" / "users"

    @property
    def online_items(self) -> Path:
        return self.out / "online" / "items"

    @property
    def parity(self) -> Path:
        return self.out / "parity"

    def model(self, name: str) -> Path:
        """`name`: of a ranker, `two_tower`, `pre_ranker` or `fscd`."""
        return self.out / "models" / name

    @property
    def channels(self) -> Path:
        return self.out / "channels"

    def channel(self, name: str) -> Path:
        """`name`: of a model in `retrieve.channels`."""
        return self.channels / name

    @property
    def tuning(self) -> Path:
        return self.out / "tuning"

    @property
    def candidates(self) -> Path:
        return self.out / "candidates"

    @property
    def prerank(self) -> Path:
        return self.out / "prerank"

    @property
    def bundle(self) -> Path:
        return self.out / "bundle"
