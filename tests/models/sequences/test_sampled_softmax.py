from __future__ import annotations

import torch
from torch.nn import functional as F

from models.sequences.encoder import EncoderSettings, SequenceEncoder
from models.sequences.sampled_softmax import loss, negatives


def test_all_items_as_negatives_are_the_softmax_itself():
    torch.manual_seed(0)
    encoder = SequenceEncoder(12, EncoderSettings(width=4, temperature=0))
    users, target = torch.randn(7, 4), torch.randint(2, 12, (7,))
    whole = F.cross_entropy(users @ encoder.items.weight[2:].T, target - 2)
    torch.testing.assert_close(loss(users, encoder, target, negatives(12, 10)), whole)


def test_a_negative_that_is_the_target_is_left_out_of_its_row():
    torch.manual_seed(0)
    encoder = SequenceEncoder(6, EncoderSettings(width=3, temperature=0))
    users, target = torch.randn(2, 3), torch.tensor([2, 3])
    scores = users @ encoder.items.weight.T
    of_first = F.cross_entropy(scores[0, [2, 3, 5]][None], torch.tensor([0]))
    of_second = F.cross_entropy(scores[1, [3, 2, 5]][None], torch.tensor([0]))
    torch.testing.assert_close(loss(users, encoder, target, torch.tensor([2, 3, 5])), (of_first + of_second) / 2)


def test_negatives_are_known_items():
    drawn = negatives(1000, 500)
    assert drawn is not None
    assert negatives(1000, 998) is None
    assert len(drawn) == 500
    assert int(drawn.min()) >= 2
    assert int(drawn.max()) < 1000
