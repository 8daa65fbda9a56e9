from __future__ import annotations

import pytest
from typer.testing import CliRunner

from contracts.errors import ConfigError
from serving.proto import sluice_pb2 as pb
from sluice.cli import app
from sluice.commands.rank_command import describe, describe_fate, how_to_quote, parse_placements, parse_values


def test_context_values_get_the_type_they_look_like():
    parsed = parse_values(["hour=7", "price=1.5", "new=true", "device=phone", "zip='02139'", "note=a=b"])
    assert parsed == {"hour": 7, "price": 1.5, "new": True, "device": "phone", "zip": "02139", "note": "a=b"}
    assert [type(value) for value in parsed.values()] == [int, float, bool, str, str, str]


def test_quotes_of_both_kinds_keep_a_number_as_text():
    assert parse_values(["a='1005'", 'b="1005"', "c='1\"", "d='"]) == {"a": "1005", "b": "1005", "c": "'1\"", "d": "'"}


def test_where_text_is_needed_and_a_number_was_given_the_quotes_are_shown():
    problem = "INVALID_ARGUMENT: context[site_code]: is 1005 of type int, string is needed"
    assert how_to_quote(problem, ["hour=7", "site_code=1005"]).endswith("--context \"site_code='1005'\"")
    assert how_to_quote(problem, ["hour=7"]) == how_to_quote("a number is needed", ["site_code=1005"]) == ""
    assert how_to_quote(problem, ["site_code=x"]) == ""


def test_several_values_of_a_field_follow_one_another():
    assert parse_values(["tags=a", "hour=7", "tags=b", "tags=3"]) == {"tags": ("a", "b", 3), "hour": 7}


@pytest.mark.parametrize("pair", ["hour", "=7"])
def test_a_pair_without_name_or_equals_is_refused(pair):
    with pytest.raises(ConfigError, match=f"^--value {pair!r} is not NAME=VALUE"):
        parse_values([pair], "--value")


def test_placements_have_names_and_limits():
    assert [(one.name, one.limit) for one in parse_placements(["top=3", "side=12"])] == [("top", 3), ("side", 12)]


@pytest.mark.parametrize("pair", ["top", "=3", "top=", "top=few", "top=-1"])
def test_a_placement_without_name_or_limit_is_refused(pair):
    with pytest.raises(ConfigError, match="NAME=LIMIT"):
        parse_placements([pair])


def test_the_description_shows_every_slate():
    slates = [pb.PlacementResponse(name=name, items=[pb.RankedItem(item_id=item)])
              for name, item in (("top", "i1"), ("side", "i2"))]
    lines = describe(pb.RankResponse(bundle_version="b-1", known_user=True, placements=slates)).splitlines()
    assert [line.split()[:2] for line in lines] == [["b-1", "known"], ["top:"], ["1", "i1"], ["side:"], ["1", "i2"]]


def test_the_description_shows_items_reasons_and_stages_with_their_cause():
    answer = pb.RankResponse(
        bundle_version="b-1", known_user=False,
        items=[pb.RankedItem(item_id="i9", probability=0.25, score=2.0, price=0.5, channel="popularity",
                             reasons=[pb.Reason(field="city", logit_change=-0.5)])],
        stages=[pb.StageReport(name="rank", candidates_in=5, candidates_out=1, microseconds=70, cause="deadline")],
    )  # fmt: skip
    text = describe(answer)
    for part in ("unknown user", "i9", "p 0.2500", "price 0.5000", "city -0.50", "5 -> 1 in 70 us", "(deadline)"):
        assert part in text


def test_candidates_that_the_bundle_does_not_know_are_named():
    assert "unknown: i7, i8" in describe(pb.RankResponse(unknown_candidates=["i7", "i8"]))


def test_the_fate_of_a_shown_item_names_the_rule_that_pinned_it():
    pinned = pb.ItemFate(item_id="i7", position=1, cause="the rule 'hero' puts it there")
    assert describe_fate(pinned) == "     i7 is shown at 1, the rule 'hero' puts it there"
    assert describe_fate(pb.ItemFate(item_id="i8", position=2)) == "     i8 is shown at 2"


def test_the_fate_of_a_dropped_item_has_its_stage_cause_and_scores():
    dropped = pb.ItemFate(item_id="i7", stage="rerank", cause="the slate is full", score=0.25, needed=0.5, measure="p")
    assert describe_fate(dropped) == "     i7 was dropped by rerank, the slate is full: p 0.25, needed 0.5"
    dropped.ClearField("needed")
    assert describe_fate(dropped) == "     i7 was dropped by rerank, the slate is full: p 0.25"


@pytest.mark.parametrize(("given", "said"), [
    (["--limit", "-5"], "-5 is not in the range 1<=x<=4294967295"),
    (["--limit", "5000000000"], "5000000000 is not in the range 1<=x<=4294967295"),
    (["--placement", "top=9999999999"], "--placement 'top=9999999999' asks for more than 4294967295 items"),
    (["--placement", f"top={'9' * 5000}"], "asks for more than 4294967295 items; give a smaller LIMIT"),
    (["--context", "id=12345678901234567890123"], "--context \"id='12345678901234567890123'\""),
    (["--context", "id=-9223372036854775809"], "is a whole number outside -9223372036854775808 to"),
    (["--user", "u\udcff"], "'u\\udcff' is not UTF-8"), (["--candidate", "\udcff"], "is not UTF-8"),
    (["--recent", "a", "--recent", "\udcff"], "'\\udcff' is not UTF-8"), (["--why-not", "\udcff"], "is not UTF-8"),
    (["--context", "city=\udcff"], "is not UTF-8"), (["--placement", "\udcff=3"], "is not UTF-8")])
def test_what_a_request_cannot_hold_is_wrong_use_and_one_sentence(given, said):
    refused = CliRunner().invoke(app, ["rank", "--user", "u1", "--target", "127.0.0.1:1", *given])
    assert refused.exit_code == 2
    assert said in " ".join(refused.output.split())


def test_the_largest_numbers_of_a_request_are_taken():
    assert parse_values([f"a={2**63 - 1}", f"b={-(2**63)}"]) == {"a": 2**63 - 1, "b": -(2**63)}
    assert parse_placements([f"top={2**32 - 1}"])[0].message().limit == 2**32 - 1
