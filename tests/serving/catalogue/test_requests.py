from __future__ import annotations

import gc
from dataclasses import replace

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from contracts.errors import RequestError
from serving.bundle.loaded_bundle import LoadedBundle
from serving.catalogue.requests import ChangeReader
from serving.proto import sluice_pb2 as pb
from serving.request.message_bounds import OutOfBounds


def upsert(item: str = "i", version: int = 1, **given: object) -> pb.UpsertRequest:
    change = pb.Change(item_id=item, version=version)
    return pb.UpsertRequest(items=[pb.ItemUpsert(change=change, **given)])  # type: ignore[arg-type]


def test_an_upsert_is_all_that_it_says(loaded: LoadedBundle) -> None:
    values = {"category": pb.Value(text="odd"), "price": pb.Value(number=2.5),
              "tags": pb.Value(list=pb.ValueList(values=[pb.Value(text="red")]))}
    asked = ChangeReader(loaded).read(upsert(values=values, bid=1.5, stock=0))[0]
    assert asked.problem is None
    item, bid, stock = asked.changes
    assert item.values == {"category": "odd", "price": 2.5, "tags": ("red",)}
    assert (bid.kind, bid.number, stock.kind, stock.number) == ("bid", 1.5, "stock", 0.0)
    assert item.event_time == item.arrived


def test_the_other_batches(loaded: LoadedBundle) -> None:
    reader, change = ChangeReader(loaded), pb.Change(item_id="i", version=3, event_time=Timestamp(seconds=7))
    withdrawn = reader.read(pb.WithdrawRequest(items=[change]))[0].changes[0]
    assert (withdrawn.withdraws, withdrawn.version, withdrawn.event_time) == (True, 3, 7_000_000)
    bid = reader.read(pb.SetBidsRequest(items=[pb.ItemBid(change=change, bid=2)]))[0].changes[0]
    stock = reader.read(pb.SetStockRequest(items=[pb.ItemStock(change=change, stock=4)]))[0].changes[0]
    assert (bid.kind, bid.number, stock.kind, stock.number) == ("bid", 2.0, "stock", 4.0)


def test_what_is_said_to_come_to_be_later_came_when_it_arrived(loaded: LoadedBundle) -> None:
    """Else no later bundle would ever know better."""
    change = pb.Change(item_id="i", version=3, event_time=Timestamp(seconds=253_402_300_799))
    for request in (pb.UpsertRequest(items=[pb.ItemUpsert(change=change)]),
                    pb.SetBidsRequest(items=[pb.ItemBid(change=change, bid=2)])):
        (made,) = ChangeReader(loaded).read(request)[0].changes
        assert made.event_time == made.arrived


def test_a_number_that_requests_ask_ranges_of_is_one(loaded: LoadedBundle) -> None:
    retrieve = loaded.settings.retrieve.model_copy(update={"range_fields": ("weight",), "created_field": "born"})
    reader = ChangeReader(replace(loaded, settings=loaded.settings.model_copy(update={"retrieve": retrieve})))
    good = {"weight": pb.Value(number=2.5), "born": pb.Value(integer=1_700_000_000)}
    assert reader.read(upsert(values=good))[0].changes[0].values == {"weight": 2.5, "born": 1_700_000_000}
    for wrong in (pb.Value(text="heavy"), pb.Value(flag=True)):
        problem = reader.read(upsert(values={"weight": wrong}))[0].problem
        assert problem is not None
        assert (problem.field, "send a number" in problem.text) == ("values[weight]", True)


def test_what_requests_filter_by_can_be_compared(loaded: LoadedBundle) -> None:
    """As assembly asks of the bundle's own column, which need not be a field."""
    retrieve = loaded.settings.retrieve.model_copy(update={"filter_fields": ("shop",)})
    reader = ChangeReader(replace(loaded, settings=loaded.settings.model_copy(update={"retrieve": retrieve})))
    for good, value in ((pb.Value(text="s"), "s"), (pb.Value(integer=7), 7), (pb.Value(flag=True), True)):
        assert reader.read(upsert(values={"shop": good}))[0].changes[0].values == {"shop": value}
    listed = pb.Value(list=pb.ValueList(values=[pb.Value(text="s")]))
    for wrong, what in ((pb.Value(number=7.0), "is 7.0 of type float"), (listed, "is a list")):
        problem = reader.read(upsert(values={"shop": wrong}))[0].problem
        assert problem is not None
        assert (problem.field, problem.text) == (
            "values[shop]", f"{what}, and requests filter by it; send text, a whole number (`integer`) or a flag")


@pytest.mark.parametrize(("request_", "field", "said"), [
    (upsert(""), "change.item_id", "is empty"), (upsert("a\0"), "change.item_id", "NUL"),
    (upsert("x" * 600), "change.item_id", "600 characters"), (upsert(version=0), "change.version", "1 or more"),
    (upsert(bid=1e39), "bid", "at most 1e+09"), (upsert(bid=-1.0), "bid", "0 or more"),
    (upsert(stock=float("nan")), "stock", "finite"),
    (upsert(values={"categori": pb.Value(text="x")}), "values[categori]", "did you mean 'category'"),
    (upsert(values={"price": pb.Value(text="x")}), "values[price]", "a number is needed"),
    (upsert(values={"price": pb.Value()}), "values[price]", "no value"),
    (upsert(values={f"name {n}": pb.Value(integer=1) for n in range(2000)}), "values", "max_fields"),
    (upsert(values={"tags": pb.Value(list=pb.ValueList(values=[pb.Value()]))}), "values[tags][0]", "no value"),
    (upsert(values={"price": pb.Value(number=float("inf"))}), "values[price]", "finite"),
])
def test_one_that_is_wrong_is_refused_whole_and_alone(
    loaded: LoadedBundle, request_: pb.UpsertRequest, field: str, said: str
) -> None:
    request_.items.append(pb.ItemUpsert(change=pb.Change(item_id="right", version=1)))
    wrong, right = ChangeReader(loaded).read(request_)
    assert wrong.problem is not None
    assert wrong.problem.field == field
    assert said in wrong.problem.text
    assert wrong.changes == []
    assert [change.item for change in right.changes] == ["right"]


@pytest.mark.slow
def test_what_is_refused_leaves_nothing_to_the_garbage_collector(loaded: LoadedBundle) -> None:
    """Errors kept with their frames were collected by the ten thousands at once, while every caller waited."""
    def kept_by(items: int) -> int:
        ChangeReader(loaded).read(pb.WithdrawRequest(items=[pb.Change()] * items))
        return sum(type(one) is RequestError for one in gc.get_objects())

    gc.collect()
    gc.disable()
    try:
        assert kept_by(50) == kept_by(1)
    finally:
        gc.enable()


def test_a_batch_has_its_bound(loaded: LoadedBundle) -> None:
    most = loaded.settings.serve.max_candidates
    with pytest.raises(OutOfBounds, match="max_candidates"):
        ChangeReader(loaded).read(pb.WithdrawRequest(items=[pb.Change(item_id="i", version=1)] * (most + 1)))


def test_what_is_no_time_is_refused_alone(loaded: LoadedBundle) -> None:
    wrong = pb.Change(item_id="i", version=1)
    wrong.event_time.nanos = -1
    refused, right = ChangeReader(loaded).read(pb.WithdrawRequest(items=[wrong, pb.Change(item_id="j", version=1)]))
    assert refused.problem is not None
    assert refused.problem.field == "change.event_time"
    assert right.problem is None
