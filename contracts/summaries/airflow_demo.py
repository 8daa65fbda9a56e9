"""Days of the simulated marketplace under Airflow, while a server that follows the champion is asked without end."""

from __future__ import annotations

from contracts.summaries.summary import Record, Summary


class Judged(Record):
    """A figure that a gate or the watch judged, with its limit. `distance` from it in standard errors, or where
    `of_limit` in multiples of it: positive where nothing is refused."""

    figure: str
    value: float
    limit: str
    distance: float
    of_limit: bool = False

    @property
    def unit(self) -> str:
        """What `distance` is counted in."""
        return "times the limit" if self.of_limit else "standard errors"

    @property
    def sentence(self) -> str:
        """As people read it."""
        return f"{self.figure} {self.value:.4f}, {self.limit} is allowed: {self.distance:+.1f} {self.unit} from it"


class DemoDay(Record):
    """One day's run over the log up to `log_until`, and what visitors saw while it lasted.

    bundle            champion at the day's end
    refused           in the words of the gate that refused; empty where none did
    rolled_back       why the watch took the new champion back; empty where it did not
    requests          of users who come in real time; `failures`: what failed ones ended with, each once
    visits            of the next day's log, the same on any machine; `logged_rows` are all impressions of that log
    gain, gain_low    challenger minus champion at the promotion gate, GAUC, and its lower 95% bound
    predicted_over_observed   clicks, as the watch saw them last
    judged            by quality gate, promotion gate and watch; first what refused a delivery that was repaired
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
    judged: tuple[Judged, ...] = ()
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
    """`events` a day by the page's old rule, `rate` requests a second by users in no log.

    seconds   in all; of them until Airflow was up and the history drawn, and until there was a first champion
    """

    days: tuple[DemoDay, ...]
    events: int
    rate: float
    start_seconds: float = 0.0
    first_champion_seconds: float = 0.0
    seconds: float
