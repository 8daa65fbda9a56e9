"""What stands between one day and the next: data quality, the promotion gate, the watch."""

from __future__ import annotations

from pydantic import Field, model_validator

from contracts.config.section import Section
from contracts.duration import Duration


class Gate(Section):
    """When a challenger may become champion; both are judged on the same test window."""

    margin: float = Field(
        0.002, ge=0, description="refused when the lower 95% bound of its GAUC minus the champion's lies below -margin"
    )
    draws: int = Field(500, ge=20, description="of the bootstrap over users")
    max_miscalibration: float = Field(
        0.2, gt=0, description="refused when predicted over observed is surely beyond 1 + this, or its inverse"
    )
    max_latency_ratio: float = Field(1.5, gt=1, description="of median processor milliseconds over the champion's")
    latency_requests: int = Field(200, ge=10)
    max_recall_loss: float = Field(
        0.03, ge=0, le=1, description="refused when retrieval surely finds a smaller share of the test window's clicks "
        "than the champion's, by more than this; 1 never refuses"
    )
    recall_clicks: int = Field(1000, ge=10, description="of the test window, by which retrieval is judged")


class Watch(Section):
    """When the served champion is to be rolled back, by its answers and the clicks on them.

    A figure counts against it only where its whole 95% interval lies beyond the limit, so that few answers stay silent.
    """

    span: Duration = Field(86_400, description="of the answers looked at, unless the command says since when")
    min_answers: int = Field(500, ge=100, description="fewer answers of the champion are not judged")
    max_error_rate: float = Field(
        0.01, ge=0, lt=1, description="calls that failed by the server's fault, of those not refused for load"
    )
    max_refusal_rate: float = Field(
        0.05, ge=0, le=1, description="calls refused because there was too much to do, of all; 1 never speaks against"
    )
    max_incomplete_retrieval: float = Field(
        0.05, ge=0, le=1, description="answers whose retrieval went without one of its channels, for want of time or "
        "because it failed; 1 never speaks against"
    )
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
    limits: dict[str, float | tuple[float, float]] = Field({}, description="figure -> limit, not learned")

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
