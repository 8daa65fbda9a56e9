"""The page in a real browser: what it draws of figures, records and two answers beside one another."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from prometheus_client.mmap_dict import MmapedDict, mmap_key

from serving.bundle.loaded_bundle import LoadedBundle
from serving.console.records import Records
from serving.console.side_port import PAGE, Console, side_app, side_port
from serving.gateway.http_server import Address
from serving.server.servicer import RankingServicer
from serving.stages.funnel import Funnel
from tests.serving.in_process_server import InProcessServer

SECTION = {"title": "Found crosses", "note": "2 of 9", "columns": ["cross", "gain"],
           "rows": [["city x hour", 1.5], ["device x tags", 30.25]],
           "curve": {"x": "price", "y": "recall", "lines": {"frontier": [[1, 0.5], [2, 0.75]]}}}
GAUGES = {"sluice_workers": ("livesum", {}, 1.0), "sluice_score_drift_psi": ("livemax", {}, 0.125),
          "sluice_drift_sample_requests": ("livesum", {}, 900.0),
          "sluice_field_drift_psi": ("livemax", {"field": "device"}, 0.375)}
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run",
         "--virtual-time-budget=5000", "--timeout=60000")


def write_figures(folder: Path) -> None:
    for name, (mode, labels, value) in GAUGES.items():
        held = MmapedDict(str(folder / f"gauge_{mode}_{os.getpid()}.db"))
        held.write_value(mmap_key(name, name, list(labels), list(labels.values()), "help"), value, 0.0)
        held.close()


@pytest.fixture(scope="module")
def dom(loaded: LoadedBundle, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], str]]:
    """What the page is after its scripts, by its query."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    assert browser, "Chromium is missing; `make chromium` installs it"
    folder, profile = tmp_path_factory.mktemp("figures"), tmp_path_factory.mktemp("profile")
    write_figures(folder)
    servicer = RankingServicer(Funnel(loaded), loaded.manifest, loaded.settings.serve)
    command = (sys.executable, "-c", f"print({json.dumps({'sections': [SECTION]})!r})")
    console = Console(records=Records(command))
    with InProcessServer(servicer) as server, side_port(side_app(folder, console), Address(port=0)) as port:
        console.lookup.target = console.other.target = server.target

        def read(query: str) -> str:
            words = [browser, *FLAGS, f"--user-data-dir={profile}", "--dump-dom", f"http://127.0.0.1:{port}/{query}"]
            return subprocess.run(words, check=True, capture_output=True, text=True, timeout=150).stdout

        yield read
    servicer.close()


@pytest.mark.slow
def test_figures_drift_and_records_are_shown(dom: Callable[[str], str]) -> None:
    page = dom("")
    assert "1 worker serving" in page
    assert re.search(r"<td>device</td><td class=\"n\">0.375</td><td class=\"bad\">much</td>", page)
    assert "900" in page
    for part in ("Found crosses", "city x hour", "30.25", "polyline", "recall by price", "the bundle served on"):
        assert part in page


@pytest.mark.slow
@pytest.mark.parametrize("beside", ["same", "other"])
def test_two_answers_stand_beside_one_another(dom: Callable[[str], str], beside: str) -> None:
    page = dom(f"?user=u07&limit=4&missing=none&beside={beside}&rerank2=skip")
    assert re.search(r"\d of 4 items are on both slates", page)
    assert ">Here</h3>" in page
    assert ">There</h3>" in page
    assert page.count("the bundle does not know it") == 2


def test_it_loads_nothing_from_elsewhere_and_names_what_is_typed() -> None:
    text = PAGE.read_text("utf-8")
    assert re.findall(r"(?:src|href)=|@import|url\((?!#)|https?://(?!www\.w3\.org/2000/svg)", text) == []
    typed = set(re.findall(r"<(?:input|select) id=\"(\w+)\"", text))
    assert typed == set(re.findall(r"<label for=\"(\w+)\"", text))
