"""The clock of a bundle's stages."""

from __future__ import annotations

from serving.bundle.loaded_bundle import LoadedBundle
from serving.request.deadline import Deadline
from serving.request.query import RankQuery
from serving.stages.bundle_stages import CHUNK, CLOCKED, FLOOR, LIST, SEARCH
from serving.stages.funnel import Funnel


def test_a_whole_answer_tells_the_clock_of_every_stage(loaded: LoadedBundle) -> None:
    """None of them in chunks, where there is time for all at once, and the search alone where no list is given."""
    funnel = Funnel(loaded)
    answer = funnel.rank(RankQuery("u11", 5, explain=True), Deadline(None))
    took = {name: funnel.clock.estimate(name) for name in CLOCKED}
    assert {name for name, seconds in took.items() if seconds == 0.0} == {
        LIST, *(name for name in CLOCKED if CHUNK in name)}
    assert {report.name for report in answer.stages} <= set(CLOCKED)
    assert funnel.floor == funnel.clock.estimate(SEARCH, *FLOOR)
