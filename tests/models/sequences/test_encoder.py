from __future__ import annotations

import pytest
import torch

from models.layers.sequence_blocks import BLOCKS
from models.sequences.encoder import EncoderSettings, SequenceEncoder

PLACES = ("learned", "distance", "none")


def encoder(**changed: object) -> SequenceEncoder:
    torch.manual_seed(0)
    shape = {"width": 8, "length": 6, "temperature": 0, **changed}
    return SequenceEncoder(20, EncoderSettings.model_validate(shape)).eval()


@pytest.mark.parametrize("places", PLACES)
@pytest.mark.parametrize("block", BLOCKS)
def test_padding_changes_nothing(block, places):
    network = encoder(block=block, places=places)
    short, long = torch.tensor([[3, 4, 5]]), torch.tensor([[3, 4, 5, 0, 0], [6, 7, 8, 9, 2]])
    torch.testing.assert_close(network.users(short), network.users(long)[:1])
    torch.testing.assert_close(network(short), network(long)[:1, :3])


def test_an_encoder_that_is_told_of_events_starts_as_one_that_is_not():
    plain, told = encoder(), SequenceEncoder(20, EncoderSettings(width=8, length=6, temperature=0), (7, 5)).eval()
    told.load_state_dict(plain.state_dict() | {name: one for name, one in told.state_dict().items() if "told" in name})
    items, events = torch.tensor([[3, 4, 0]]), torch.tensor([[[2, 4], [6, 3], [0, 0]]])
    assert torch.equal(told(items, events), plain(items))
    torch.nn.init.normal_(told.get_parameter("told.1.weight"))
    assert not torch.allclose(told(items, events), plain(items))
    assert torch.equal(told(items), told(items, (items > 0)[:, :, None].expand(1, 3, 2).long()))  # all unknown


@pytest.mark.parametrize(("places", "ordered"), [("learned", True), ("distance", True), ("none", False)])
def test_the_order_of_earlier_actions_enters_by_places(places, ordered):
    network = encoder(places=places)
    if network.places is None and ordered:
        torch.nn.init.normal_(network.get_parameter("blocks.0.attention.distance.bias"))
    one, other = network.users(torch.tensor([[3, 4, 5], [4, 3, 5]]))
    assert torch.allclose(one, other, atol=1e-6) != ordered


def test_the_vector_of_an_empty_row_is_zero():
    found = encoder().users(torch.tensor([[0, 0], [3, 0]]))
    assert float(found[0].detach().abs().sum()) == 0 < float(found[1].detach().abs().sum())


def test_a_temperature_makes_scores_cosines():
    network = encoder(temperature=0.5)
    users = network.users(torch.tensor([[3, 4], [5, 6]]))
    torch.testing.assert_close(users.norm(dim=1), torch.full((2,), 2.0))
    torch.testing.assert_close(network.vectors(torch.tensor([2, 7])).norm(dim=1), torch.ones(2))
    torch.testing.assert_close(network.vectors()[7], network.vectors(torch.tensor([7]))[0])


def test_the_width_is_by_the_log_unless_it_is_given():
    for given, few, many in ((None, 64, 128), (24, 24, 24)):
        settings = EncoderSettings(width=given)
        assert (settings.sized(99_999).width, settings.sized(100_000).width) == (few, many)
    assert SequenceEncoder(5, EncoderSettings()).vectors().shape == (5, 64)
