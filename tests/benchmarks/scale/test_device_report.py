from __future__ import annotations

from benchmarks.scale.device_parts import Figures
from benchmarks.scale.device_report import commit, section

ABOUT: Figures = {"name": "a card", "kind": "cuda", "threads": 1, "torch": "2", "commit": "abc", "date": "2026-01-02",
         "sizes": "{}"}


def test_a_section_names_device_commit_and_date_and_what_to_hold_figures_against() -> None:
    text = section({"device": ABOUT, "look_ups": {"forward_ms": 0.4321}, "fives": {"failed": "no | room\nleft"}})
    assert "## 2026-01-02, `sluice bench gpu` on a card (cuda), commit abc" in text
    assert "| look_ups | forward_ms | 0.432 | published, H100, a million x 128: 0.35 |" in text
    assert "| fives | failed | no / room left |  |" in text
    assert "No GPU" not in text


def test_on_a_cpu_it_says_that_no_gpu_was_at_hand() -> None:
    assert "No GPU was at hand" in section({"device": {**ABOUT, "kind": "cpu"}})


def test_the_commit_is_known_in_a_checkout() -> None:
    assert commit() != ""
