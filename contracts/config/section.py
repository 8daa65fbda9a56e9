"""What all sections of a configuration share: frozen, no unknown keys, instants in UTC."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from contracts.errors import ConfigError

Side = Literal["user", "item", "context", "cross"]
Kind = Literal["categorical", "numeric", "multi_valued", "sequence", "counter", "cross"]
KeyType = Literal["string", "int64", "bool"]
Numbers = Literal["plain", "piecewise_linear", "periodic"]
ModelName = Literal[
    "popularity", "logistic_regression", "factorisation_machine", "dnn", "dcn_v2", "gdcn", "deep_fm", "final_mlp",
    "final_net", "wukong", "din", "din_sequence", "fives",
]
ChannelName = Literal[
    "sasrec", "esasrec", "hstu", "ease", "item_cosine", "als", "bpr", "light_gcn", "recent_popularity",
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


class Section(BaseModel):
    """Frozen; a key that it lacks is refused, and a number without end or that is none."""
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
