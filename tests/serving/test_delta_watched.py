"""A delta whose probabilities are wrong, applied while it is served: the watch sees it in the server's own log and
takes it back. A real server, callers that never stop and click as before, the real command."""

from __future__ import annotations

import shutil
import threading
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

from contracts.artifacts import CALIBRATION
from contracts.bundle import bundle, delta
from contracts.bundle.bundle import load_weights, read_manifest, save_weights, verify
from contracts.release.watch import FOLDER, WatchSummary
from contracts.summaries import summary
from serving.bundle.parity import PROBABILITY
from serving.proto import sluice_pb2 as pb
from sluice.airflow_demo.steady_load import SteadyLoad
from sluice.cli import app
from sluice.demo.server_process import ServerProcess
from tests.serving.takeover_seen import GONE, USERS, until

SHIFT = -2.0  # of the log-odds: the delta promises fewer clicks than come
PER_SECOND = 20.0
PARITY = Path("parity") / "rows.parquet"
CONFIG = """
name = "market"
log = {path = "log", user_id = "user", item_id = "item", request_id = "request_id", event_time = "time"}
label.clicks = {path = "clicks", on = ["request_id", "item"], event_time = "time", known_time = "time", window = "1h"}
watch = {min_answers = 100, min_clicks = 10, click_wait = "1s", max_p99_ms = 60000, max_p99_ratio = 1000}
fields = [{name = "item", kind = "categorical", side = "item"}]
"""


def moved(probability: np.ndarray, log_odds: float) -> np.ndarray:
    odds = probability / (1 - probability) * np.exp(log_odds)
    return np.asarray(odds / (1 + odds))


def miscalibrated(source: Path, folder: Path) -> Path:
    """As if its ranker had been calibrated on other clicks: log-odds are moved, and in its parity rows, too."""
    build = Path(shutil.copytree(source, folder / "build-shifted"))
    (build / bundle.MANIFEST).unlink()
    curve = load_weights(build / "rank" / CALIBRATION)
    save_weights(build / "rank" / CALIBRATION, curve | {"log_odds": curve["log_odds"] + SHIFT})
    rows = pq.read_table(build / PARITY)
    place = rows.schema.get_field_index(PROBABILITY)
    promised = moved(rows[PROBABILITY].to_numpy(), SHIFT)
    pq.write_table(rows.set_column(place, PROBABILITY, pa.array(promised)), build / PARITY)
    bundle.publish(build, folder / "shifted", "market")
    return folder / "shifted"


class Clickers(SteadyLoad):
    """They click with the probability that the sound bundle gives, whichever bundle answers."""

    def __init__(self, target: str, shifted: str) -> None:
        super().__init__(target, USERS, PER_SECOND)
        self._shifted, self._rng = shifted, np.random.default_rng(11)
        self._clicks: list[dict[str, Any]] = []
        self._lock = threading.Lock()

    def request(self, user: str) -> pb.RankRequest:
        return pb.RankRequest(user_id=user, request_id=uuid.uuid4().hex)

    def answered(self, request: pb.RankRequest, answer: pb.RankResponse) -> None:
        given = np.array([item.probability for item in answer.items])
        true = moved(given, -SHIFT) if answer.bundle_version == self._shifted else given
        hits = np.flatnonzero(self._rng.random(len(given)) < true)
        now = datetime.now(UTC)
        with self._lock:
            self._clicks += [
                {"request_id": request.request_id, "item": answer.items[hit].item_id, "time": now} for hit in hits]

    def write(self, folder: Path) -> None:
        """All clicks so far, as the table that the configuration names."""
        folder.mkdir(exist_ok=True)
        with self._lock:
            pq.write_table(pa.Table.from_pylist(self._clicks), folder / "clicks.parquet")


@pytest.mark.slow
def test_a_delta_that_miscalibrates_is_taken_back_by_the_watch_without_a_failed_request(
    bundle_folder: Path, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(bundle_folder, tmp_path / "served"))
    made = delta.make(folder, miscalibrated(folder, tmp_path), tmp_path / "delta")
    assert {file.path for file in made.files} == {"manifest.json", str(PARITY), f"rank/{CALIBRATION}"}
    before, log, started = verify(folder), tmp_path / "server.log", datetime.now(UTC)
    (tmp_path / "watch.toml").write_text(CONFIG)

    def watched(load: Clickers, *how: str) -> Result:
        load.write(tmp_path / "clicks")
        return CliRunner().invoke(app, [
            "watch", str(tmp_path / "watch.toml"), "--out", str(tmp_path), "--answers", str(tmp_path / "answers"),
            "--clicks", str(tmp_path / "clicks"), "--since", started.isoformat(), *how])

    options = ("--workers", "1", "--follow", "--poll-seconds", "0.2", "--connection-seconds", "1",
               "--log-answers", str(tmp_path / "answers"))
    server = ServerProcess(folder, log, options=options)
    try:
        with Clickers(server.target, made.after) as load:
            until(lambda: len(load.outcomes) > 120)
            sound = watched(load, "--bundle", made.before)
            assert (sound.exit_code, "fine   predicted over observed" in sound.stdout) == (0, True), sound.stdout
            delta.apply(folder, tmp_path / "delta", folder)
            until(lambda: sum(outcome.version == made.after for outcome in load.outcomes) > 100)
            applied = ("--applied", str(folder), str(tmp_path / "delta"), "--roll-back")
            until(lambda: watched(load, *applied).exit_code == 4)
            verdict = summary.required(tmp_path / FOLDER, WatchSummary, "sluice watch")
            until(lambda: f"{made.after} {GONE}" in log.read_text())
            seen = len(load.outcomes)
            until(lambda: len(load.outcomes) > seen + 20)
        assert load.failed == []
        assert {outcome.version for outcome in load.outcomes} == {made.before, made.after}
        assert load.outcomes[-1].version == made.before
    finally:
        assert server.stop() == 0
    assert [figure.name for figure in verdict.figures if figure.against] == ["predicted_over_observed"]
    assert verdict.roll_back is not None
    assert (verdict.bundle, verdict.roll_back.champion) == (made.after, made.before)
    assert read_manifest(folder) == before
    assert "Traceback" not in log.read_text()
