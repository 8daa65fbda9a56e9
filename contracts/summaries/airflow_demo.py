"""Days of the simulated marketplace under Airflow, while a server that follows the champion is asked without end."""

from __future__ import annotations

from contracts.summaries.summary import Record, Summary


class DemoDay(Record):
    """One day's run over the log up to `log_until`, and what visitors saw while it lasted.

    bundle            champion at the day's end
    refused           in the words of the gate that refused; empty where none did
    rolled_back       why the watch took the new champion back; empty where it did not
    failures          what failed requests ended with, each once
    logged_rows       impressions of the next day's log
    share_of_oracle   expected bid x click of what was shown, over that of the best slates
    """

    day: int
    log_until: str
    bundle: str
    refused: str
    rolled_back: str
    requests: int
    failed_requests: int
    failures: tuple[str, ...]
    served_bundles: tuple[str, ...]
    logged_rows: int
    share_of_oracle: float


class AirflowDemoSummary(Summary):
    """`events` a day by the page's old rule, `rate` visits a second."""

    days: tuple[DemoDay, ...]
    events: int
    rate: float
    seconds: float
