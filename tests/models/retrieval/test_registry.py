from __future__ import annotations

import pytest

from contracts.errors import ConfigError
from models.retrieval import registry
from models.sequences.sequence_retriever import SequenceRetriever, SequenceSettings


def test_settings_are_changed_key_by_key():
    found = registry.settings("esasrec", {"epochs": 3, "encoder": {"width": 8}})
    assert isinstance(found, SequenceSettings)
    assert (found.epochs, found.encoder.width, found.encoder.block) == (3, 8, "ligr")


@pytest.mark.parametrize("name", registry.names())
def test_every_model_is_built_by_its_name(name):
    assert callable(registry.build(name, 0).fit)


def test_sequence_models_differ_in_their_block():
    blocks = [model.settings.encoder.block for name in ("sasrec", "esasrec", "hstu")
              if isinstance(model := registry.build(name, 0), SequenceRetriever)]
    assert blocks == ["transformer", "ligr", "hstu"]


@pytest.mark.parametrize(("name", "changed", "said"), [
    ("sasrek", {}, "sasrec"), ("ease", {"l3": 1}, "l3"), ("ease", {"l2": -1}, "l2"), ("popularity", {"l2": 1}, "l2"),
    ("sasrec", {"encoder": {"widht": 3}}, "encoder.widht"), ("sasrec", {"encoder": 3}, "encoder")])
def test_what_no_model_knows_is_refused(name, changed, said):
    with pytest.raises(ConfigError, match=said):
        registry.settings(name, changed)
