"""Values of every kind of field, of which the encoder knows each."""

from __future__ import annotations

import numpy as np

from contracts.features import vocabulary
from contracts.features.encoding import Encoder
from contracts.features.feature_spec import UNKNOWN
from contracts.features.vocabulary import Vocabulary
from federated.clients.made_up_values import made_up
from tests.federated import small_world


def test_the_encoder_knows_what_was_made_up(tmp_path):
    known = vocabulary.read_all(small_world.write(tmp_path).encoding)
    encoder, drawn = Encoder(small_world.spec(), known), np.random.default_rng(1)
    for name in ("city", "history", "price"):
        field = encoder.spec.by_name[name]
        values = made_up(field, known, drawn, 20)
        assert len(values) == 20
        assert (encoder.field_ids(field, values)[0] > UNKNOWN).all()
        assert len({str(value) for value in values}) > 1


def test_an_empty_vocabulary_has_nothing_to_draw_from():
    spec, nothing = small_world.spec(), {name: Vocabulary.of([], "string") for name in ("city", "item")}
    assert made_up(spec.by_name["city"], nothing, np.random.default_rng(1), 2) == [None, None]
    assert made_up(spec.by_name["history"], nothing, np.random.default_rng(1), 2) == [[], []]
