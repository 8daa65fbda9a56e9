"""The figures of a tiny world behind a real server; what they are is the benchmark's own business."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.serving import load
from benchmarks.serving.load import main
from contracts.errors import SluiceError
from serving.native.native_library import library
from tests.benchmarks.printed_figures import all_finite, last_line, refuses


@pytest.mark.slow
def test_the_last_line_holds_what_a_reader_looks_for(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(load, "SHARES", (0.5,))
    monkeypatch.setattr(load, "OVERLOAD", (2.8, 5.0))  # the two that figures are named after
    monkeypatch.setattr(load, "SWAP_CONNECTION_SECONDS", 1.0)
    main(["--items", "2000", "--workers", "1", "--seconds", "1", "--requests", "20", "--swaps", "1",
          "--json"])
    found = last_line(capsys.readouterr().out)["load"]
    assert all_finite(found)
    assert found["one_caller"]["p50_ms"] <= found["one_caller"]["p99_ms"]
    assert found.keys() == {
        "funnel_over_floor", "explained_over_floor", "grpc_adds_ms", "one_caller", "capacity_per_second",
        "p99_at_300_ms", "failed_at_300", "goodput_at_2_8x", "goodput_at_5x", "swap",
        "empty_call_ms", "bare_empty_call_ms", "cores_at_2_8x", "cores_at_5x", "goodput", "grpc_adds_by_client_ms",
        "floor", "server", "grpc_beyond_stages_ms"}
    assert 0 < found["grpc_adds_ms"] < found["one_caller"]["p50_ms"]
    assert found["floor"]["capacity_per_second"] > 0 < found["floor"]["p50_ms"]
    assert all(shares.keys() == {str(share) for share in load.OVERLOAD} for shares in found["goodput"].values())
    assert found["goodput"]["1"]["5.0"]["goodput"] == found["goodput_at_5x"]
    assert found["server"] == ("native" if library() else "grpc.aio")
    assert found["bare_empty_call_ms"] > 0
    assert found["empty_call_ms"] > 0
    assert all(cores["generator"] > 0 for cores in (found["cores_at_2_8x"], found["cores_at_5x"]))
    assert found["swap"].keys() == {"failed", "p99_ratio", "p99_ms"}


def test_wrong_options_are_refused() -> None:
    assert refuses(main, "--ranker", "oracle")
    assert refuses(main, "--workers", "few")


def test_degraded_answers_are_a_share_of_those_in_time() -> None:
    assert load.degraded_share({"degraded": 30, "codes": {"OK": 120, "RESOURCE_EXHAUSTED": 900}}) == 0.25
    assert load.degraded_share({"degraded": 0, "codes": {"DEADLINE_EXCEEDED": 9}}) == 0.0


def test_goodput_is_a_share_of_the_capacity_beside_it() -> None:
    stretches = {share: {"answered": 60.0, "capacity_per_second": most, "degraded": 3, "codes": {"OK": 30}}
                 for share, most in (("2.8", 80.0), ("5.0", 60.0))}
    assert load.in_time(stretches) == {"goodput": {"2.8": 0.75, "5.0": 1.0}, "degraded": {"2.8": 0.1, "5.0": 0.1}}


def test_workers_behind_a_balancer_are_where_they_last_said() -> None:
    said = "".join(f"serving a, to the balancer on 127.0.0.1:{port}\n" for port in (41, 42)) + "serving a on [::]:50\n"
    assert load.workers_address(said) == "127.0.0.1:42"


def test_cores_beyond_capacity_are_those_of_answers_refusals_and_generator() -> None:
    """200 answers at 3 ms a second are 0.6 of 1.1 cores."""
    found = load.where_cores_go(
        {"answered": 200.0, "answer_core_ms": 3.0, "server_cores": 1.1, "generator_cores": 0.2})
    assert found == pytest.approx({"answers": 0.6, "refusals": 0.5, "generator": 0.2})


def test_changes_of_bundles_that_do_not_end_leave_the_other_figures(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def stuck(*_: object) -> dict[str, object]:
        raise SluiceError("change 1 of bundles did not end: the log's last words")

    monkeypatch.setattr(load, "measure_swaps", stuck)
    found = load.swapped(tmp_path, 4, 50.0, 1)
    assert found["failed"] is None
    assert found["p99_ms"] is None
    assert load.swaps_line(4, found) == ("4 changes of bundles were not measured: change 1 of bundles did not end: "
                                         "the log's last words")
