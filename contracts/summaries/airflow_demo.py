"""Days of the simulated marketplace under Airflow, while a server that follows the champion is asked without end."""

from __future__ import annotations

from contracts.summaries.summary import Record, Summary


class DemoDay(Record):
    """One day's run over the log up to `log_until`, and what visitors saw while it lasted.

    bundle            champion at the day's end
    refused           in the words of the gate that refused; empty where none did
    rolled_back       why the watch took the new champion back; empty where it did not
    requests          of users who come in real time; `failures`: what failed ones ended with, each once
    visits            of the next day's log, the same on any machine; `logged_rows` are all impressions of that log
    gain, gain_low    challenger minus champion at the promotion gate, GAUC, and its lower 95% bound
    predicted_over_observed   clicks, as the watch saw them last
    share_of_oracle   expected bid x click of what the visits were shown, over that of the best slates
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
    visits: int
    logged_rows: int
    gain: float | None = None
    gain_low: float | None = None
    predicted_over_observed: float | None = None
    share_of_oracle: float
    seconds: float

    @property
    def mishap(self) -> str:
        """In two words; empty where there was none."""
        if self.rolled_back:
            return "rolled back"
        return f"refused: {self.refused.partition(':')[0]}" if self.refused else ""

    @property
    def happened(self) -> str:
        """In the words of who refused or rolled back."""
        if self.rolled_back:
            return f"promoted, then rolled back: {self.rolled_back}"
        if self.refused.startswith("quality") and "delivered again" not in self.refused:
            return f"refused: {self.refused}; delivered again, then promoted"
        return f"refused: {self.refused}" if self.refused else "promoted"


class AirflowDemoSummary(Summary):
    """`events` a day by the page's old rule, `rate` requests a second by users in no log."""

    days: tuple[DemoDay, ...]
    events: int
    rate: float
    seconds: float
