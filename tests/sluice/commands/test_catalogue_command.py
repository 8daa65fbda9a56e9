from __future__ import annotations

import pytest
from typer import Exit
from typer.testing import CliRunner

from contracts.errors import ConfigError
from serving.proto.sluice_pb2 import ChangeResponse, ChangeResult
from sluice.cli import app
from sluice.commands.catalogue_command import Action, parse_changes, show_outcomes


def test_numbers_go_with_their_items() -> None:
    bids = parse_changes(Action.SET_BIDS, ["a=1.5", "b=c=2"], 7, {}, None, None)
    assert [(one.item, one.bid, one.stock, one.version) for one in bids] == [("a", 1.5, None, 7), ("b=c", 2.0, None, 7)]
    stock = parse_changes(Action.SET_STOCK, ["a=0"], 7, {}, None, None)
    assert [(one.item, one.bid, one.stock) for one in stock] == [("a", None, 0.0)]


def test_an_upsert_says_the_same_of_all_its_items() -> None:
    found = parse_changes(Action.UPSERT, ["a", "b"], 1, {"category": "x"}, 2.0, None)
    assert [(one.item, one.values, one.bid, one.stock) for one in found] == [
        ("a", {"category": "x"}, 2.0, None), ("b", {"category": "x"}, 2.0, None)]


def test_a_refused_code_is_told_with_the_quotes_that_make_it_text(capsys: pytest.CaptureFixture[str]) -> None:
    refused = ChangeResult(item_id="90001", outcome=ChangeResult.REFUSED, field="values[ad_category]",
                           problem="is 3 of type int, string is needed")
    with pytest.raises(Exit):
        show_outcomes(ChangeResponse(results=[refused]), ["ad_category=3"])
    assert "string is needed; " in (told := capsys.readouterr().out)
    assert "--value \"ad_category='3'\"" in told


@pytest.mark.parametrize(("action", "items", "bid", "said"), [
    (Action.SET_BIDS, ["a"], None, "ITEM=NUMBER"), (Action.SET_STOCK, ["a=many"], None, "ITEM=NUMBER"),
    (Action.SET_STOCK, ["=3"], None, "ITEM=NUMBER"), (Action.WITHDRAW, [], None, "at least one item"),
    (Action.STATUS, ["a"], None, "takes no items"), (Action.WITHDRAW, ["a"], 1.0, "are of upsert"),
])
def test_what_is_wrong_is_said(action: Action, items: list[str], bid: float | None, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        parse_changes(action, items, 1, {}, bid, None)


@pytest.mark.parametrize("version", ["0", "-1", "9223372036854775808"])
def test_a_version_that_no_change_can_have_is_refused(version: str) -> None:
    refused = CliRunner().invoke(app, ["catalogue", "withdraw", "i", "--item-version", version])
    assert refused.exit_code == 2
    assert f"{version} is not in the range 1<=x<=9223372036854775807" in " ".join(refused.output.split())
