from __future__ import annotations

import pytest

from contracts.errors import DataError
from contracts.features.feature_spec import FeatureField, FeatureSpec

SPEC = FeatureSpec(
    fields=(
        FeatureField(name="brand", kind="categorical", side="item", vocabulary="brand", size=7),
        FeatureField(name="city", kind="categorical", side="user", vocabulary="city", size=5),
        FeatureField(name="history", kind="sequence", side="user", vocabulary="brand", size=7, length=3, of="brand"),
        FeatureField(name="price", kind="numeric", side="item", edges={2: (1.0,), 4: (1.0, 2.0, 3.0)}),
        FeatureField(name="device", kind="categorical", side="context", vocabulary="device", size=4),
        FeatureField(name="pair", kind="cross", side="cross", size=12, buckets=10, parts=("city", "brand")),
    )
)


def test_blocks_lay_their_sides_out_without_gap_or_overlap():
    for block in ("request", "candidate"):
        end = 0
        for slot in SPEC.block_ids(block):
            assert slot.start == end
            end += slot.width
    assert [slot.name for slot in SPEC.block_ids("request")] == ["city", "history", "device"]
    assert [slot.name for slot in SPEC.block_ids("candidate")] == ["brand", "price#2", "price#4", "pair"]


def test_the_item_side_is_a_prefix_of_the_candidate_block():
    item = SPEC.id_slots("item")
    assert SPEC.block_ids("candidate")[: len(item)] == item


def test_a_sequence_shares_its_targets_table():
    assert SPEC.slot("history").table == SPEC.slot("brand").table == "brand"
    assert SPEC.tables() == {"city": 5, "brand": 7, "device": 4, "price#2": 4, "price#4": 6, "pair": 12}


def test_bins_have_one_id_more_than_edges_besides_padding_and_unknown():
    assert SPEC.slot("price#4").size == 3 + 1 + 2


def test_a_spec_reads_back_as_written(tmp_path):
    SPEC.write(tmp_path)
    assert FeatureSpec.read(tmp_path) == SPEC


def test_an_unknown_slot_and_a_missing_file_are_named(tmp_path):
    with pytest.raises(DataError, match="no id slot 'nowhere'"):
        SPEC.slot("nowhere")
    with pytest.raises(DataError, match="sluice features"):
        FeatureSpec.read(tmp_path)
