from __future__ import annotations

import pytest

from contracts.config.config import parse
from models.leakage.label_columns import fields_of_the_label, words

TEXT = """
name = "x"
[log]
path = "p"
derive = { stars = "cast(rating AS INT) + 0", hour = "hour(timestamp_seconds(seconds))" }
[label]
expression = "{label}"
[[fields]]
name = "stars"
kind = "numeric"
side = "context"
[[fields]]
name = "hour"
kind = "categorical"
side = "context"
[[fields]]
name = "note"
kind = "categorical"
side = "context"
column = "rating"
"""


@pytest.mark.parametrize(
    ("expression", "found"),
    [
        ("rating >= 4", {"rating"}),
        ("`emp.var.rate` > 1 AND income LIKE '%it''s.'", {"emp.var.rate", "income"}),
        ("CASE WHEN coalesce(a, b) IS NULL THEN 0 ELSE cast(c AS int) END = \"d\"", {"a", "b", "c"}),
        ("1 = 1", set()),
    ],
)
def test_an_expression_reads_columns_not_functions_keywords_or_texts(expression: str, found: set[str]) -> None:
    assert words(expression) == found


def test_a_field_that_reads_the_labels_column_is_named_even_through_a_derived_one() -> None:
    config = parse(TEXT.replace("{label}", "rating >= 4"))
    assert fields_of_the_label(config) == {"stars": "rating", "note": "rating"}


def test_other_columns_are_not_suspected() -> None:
    assert fields_of_the_label(parse(TEXT.replace("{label}", "clicked = 1"))) == {}


def test_a_table_of_clicks_shares_no_column() -> None:
    clicks = TEXT.replace('[label]\nexpression = "{label}"', '[label.clicks]\npath = "c"\non = ["note"]')
    assert fields_of_the_label(parse(clicks)) == {}
