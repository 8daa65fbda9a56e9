"""The page in a real browser: what it draws of figures, records and two answers, on a desk and on a phone."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from prometheus_client.mmap_dict import MmapedDict, mmap_key

from serving.bundle.loaded_bundle import LoadedBundle
from serving.console.records import Records
from serving.console.side_port import Console, side_app, side_port
from serving.gateway.http_server import Address
from serving.server.servicer import RankingServicer
from serving.stages.funnel import Funnel
from tests.browser import Browser
from tests.serving.in_process_server import InProcessServer

CROSSES = {"title": "Found crosses", "note": "2 of 9", "columns": ["cross", "gain"],
           "rows": [["city x hour", 1.5], ["device x tags", 30.25]],
           "curve": {"x": "price", "y": "recall", "lines": {"frontier": [[1, 0.5], [2, 0.75]]}}}
COSTS = {"title": "Field costs", "note": "", "columns": ["field", "cost", "in the pre-ranker", "why it went"],
         "rows": [["advertiser_clicks_count_7d", 41.25, "no", "costs 41.25 and adds nothing that the cheaper field "
                   "advertiser_clicks_rate_7d does not say"], ["item_id", 1.0, "yes", None]]}
DAYS = {"title": "Days", "note": "", "columns": [
    "run", "bundle", "data of the day", "ranking gain over the champion (95 %)", "calibration (95 %)",
    "ms, new / champion", "gate", "watch"], "rows": [[
        "day-2026-01-07", "marketplace-6ea5f53b64e9 (version 12)", "2026-01-07: 31 figures within their limits",
        "+0.0100 (+0.0060 to +0.0140)", "1.100 (0.900 to 1.300)", "2.50 / 2.25", "promoted", None]]}
GAUGES = {"sluice_workers": ("livesum", {}, 1.0), "sluice_score_drift_psi": ("livemax", {}, 0.125),
          "sluice_drift_sample_requests": ("livesum", {}, 900.0),
          "sluice_field_drift_psi": ("livemax", {"field": "device"}, 0.375)}
LONG = {**COSTS, "title": "Long", "rows": [[f"advertiser_clicks_count_{n}d", 41.25, "no", "costs more than it is worth"]
                                           for n in range(25)]}
BESIDE = "?user=u07&limit=4&missing=none&rerank2=skip&beside="


def write_figures(folder: Path) -> None:
    for name, (mode, labels, value) in GAUGES.items():
        held = MmapedDict(str(folder / f"gauge_{mode}_{os.getpid()}.db"))
        held.write_value(mmap_key(name, name, list(labels), list(labels.values()), "help"), value, 0.0)
        held.close()


Opened = Callable[..., Browser]


@pytest.fixture(scope="module")
def opened(loaded: LoadedBundle, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opened]:
    """The browser with the page, once its figures, records and answers are there."""
    folder = tmp_path_factory.mktemp("figures")
    write_figures(folder)
    servicer = RankingServicer(Funnel(loaded), loaded.manifest, loaded.settings.serve)
    records = json.dumps({"sections": [CROSSES, COSTS, DAYS, LONG]})
    console = Console(records=Records((sys.executable, "-c", f"print({records!r})")))
    with InProcessServer(servicer) as server, side_port(side_app(folder, console), Address(port=0)) as port, \
            Browser(tmp_path_factory.mktemp("profile")) as browser:
        console.lookup.target = console.other.target = server.target

        def at(query: str, width: int = 1440, dark: bool = False) -> Browser:
            browser.open(f"http://127.0.0.1:{port}/{query}", width, dark)
            browser.until("document.body.dataset.read && document.querySelector('#cards b')")
            if query:
                browser.until("document.querySelector('#answer table')")
            return browser

        yield at
    servicer.close()


@pytest.mark.slow
def test_figures_drift_and_records_are_shown(opened: Opened) -> None:
    browser = opened("")
    shown = browser.value("document.body.innerText")
    for part in ("1 worker serving", "900", "Found crosses", "city x hour", "30.25", "the bundle on 127.0.0.1"):
        assert part in shown
    assert "watch" not in shown  # no row says anything of it
    assert browser.value("[...document.querySelectorAll('#drift td')].map((one) => one.textContent)")[:3] == [
        "device", "0.375", "much"]
    assert browser.value("document.querySelectorAll('figure > svg polyline').length") == 1
    assert "recall by price" in browser.value("document.querySelector('figure').textContent")


def reading(seconds: int, own: int = 0, **calls: int) -> str:
    """Of the page, in its words: so many calls of Rank of each status since the server began, and of the page's own."""
    lines = [f'sluice_requests_total{{method="WhyNot",status="OK"}} {own}']
    lines += [f'sluice_requests_total{{method="Rank",status="{status}"}} {number}' for status, number in calls.items()]
    return json.dumps({"at": 1000 * seconds, "text": "\n".join(lines)})


@pytest.mark.slow
def test_a_server_that_fails_every_call_and_one_that_was_started_anew_are_not_shown_as_before(opened: Opened) -> None:
    """The figures are of the last minute, whatever came of its calls; and of one server."""
    browser = opened("")
    browser.value("history.length = 0")
    add = ("(() => {{ const told = {}, now = {{ at: told.at, figures: read(told.text) }}, then = earlier(now);"
           " show(now.figures, then ? then.figures : new Map(), then ? (now.at - then.at) / 1000 : 0);"
           " return [...document.querySelectorAll('#cards div')].slice(0, 2).map((one) => one.innerText); }})()")
    asked = [browser.value(add.format(reading(seconds, **calls))) for seconds, calls in (
        (0, {"OK": 500}), (5, {"own": 7, "OK": 500}), (10, {"OK": 500, "DEADLINE_EXCEEDED": 40}), (20, {"OK": 3}),
        (30, {"OK": 13}))]
    assert asked == [["calls since the start\n500", "answered in time\n100.0 %"],
                     ["calls since the start\n507", "answered in time\n100.0 %"],
                     ["calls a second\n4.0", "answered in time\n0.0 %"],
                     ["calls since the start\n3", "answered in time\n100.0 %"],
                     ["calls a second\n1.0", "answered in time\n100.0 %"]]


@pytest.mark.parametrize("beside", ["same", "other"])
@pytest.mark.slow
def test_two_answers_stand_beside_one_another(opened: Opened, beside: str) -> None:
    shown = opened(BESIDE + beside).value("document.querySelector('#answer').innerText")
    assert re.search(r"\d of 4 items are on both slates", shown)
    assert "Here" in shown
    assert "There" in shown
    assert shown.count("the bundle does not know it") == 2


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [320, 390, 768, 1440])
@pytest.mark.slow
def test_nothing_is_wider_than_the_page_or_cut(opened: Opened, width: int, dark: bool) -> None:
    assert opened(f"{BESIDE}same", width, dark).misfits() == []


@pytest.mark.slow
def test_a_table_on_a_phone_says_what_each_value_is(opened: Opened) -> None:
    names = ("[...document.querySelectorAll('#records table')]"
             ".map((one) => getComputedStyle(one.querySelector('td'), '::before').content)")
    assert opened("", 390).value(names)[:3] == ["none", '"field"', '"run"']  # a row of two values has its room
    assert opened("", 1440).value(names) == ["none"] * 4


@pytest.mark.slow
def test_a_long_table_is_folded_on_a_phone_and_fits_once_it_is_opened(opened: Opened) -> None:
    folded = "[...document.querySelectorAll('#records details')].map((one) => one.open)"
    assert opened("", 1440).value(folded) == [True] * 4
    browser = opened("", 390)
    assert browser.value(folded) == [True, True, True, False]
    browser.value("document.querySelector('#records section:last-child summary').click()")
    browser.until("document.querySelector('#records section:last-child table.stacked')")
    assert browser.misfits() == []


@pytest.mark.slow
def test_a_table_sorts_by_number_and_says_so(opened: Opened) -> None:
    browser = opened("")
    gains = "[...document.querySelector('#records table').rows].slice(1).map((one) => one.cells[1].textContent)"
    press = "document.querySelectorAll('#records table:first-of-type th button')[1].click()"
    assert browser.value(f"{press}; {gains}") == ["30.25", "1.5"]
    assert browser.value(f"{press}; {gains}") == ["1.5", "30.25"]
    assert browser.value("document.querySelector('#records th[aria-sort]').getAttribute('aria-sort')") == "ascending"


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.slow
def test_text_can_be_read_on_its_ground(opened: Opened, dark: bool) -> None:
    assert opened(f"{BESIDE}same", 1440, dark).faint() == []


@pytest.mark.slow
def test_everything_is_reached_by_keys_alone(opened: Opened) -> None:
    browser, reached = opened(""), set()
    for _ in range(30):
        browser.press("Tab")
        reached.add(browser.value("document.activeElement.id || document.activeElement.textContent"))
    assert {"user", "context", "limit", "missing", "token", "beside", "Look up"} <= reached
    assert {"Found crosses", "cross", "gain", "Field costs", "why it went"} <= reached
    browser.value("document.querySelector('#user').value = 'u07'; document.querySelector('#user').focus()")
    browser.press("Enter")
    browser.until("document.querySelector('#answer table')")
