from __future__ import annotations

import json
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from contracts.artifacts import CHANNEL_SETTINGS, SCORES, WEIGHTS
from contracts.errors import BundleError, ParityError
from models.sequences.encoder import EncoderSettings, SequenceEncoder
from models.training import checkpoint
from serving.bundle import channels
from serving.bundle.loaded_bundle import LoadedBundle

PARITY = "parity/channels/sasrec.parquet"


def test_parity_is_recorded(with_channel):
    for channel in with_channel.channels:
        assert (channel.parity.rows, channel.parity.mismatches) == (64, 0)
        assert channel.parity.max_logit_difference < 1e-4


def test_another_score_than_trainings_is_refused(channel_folder, tmp_path, republish):
    folder = shutil.copytree(channel_folder, tmp_path / "bundle")
    table = pq.read_table(folder / PARITY)
    scores = table[SCORES].to_pylist()
    scores[3][0] += 0.1
    pq.write_table(table.set_column(table.schema.get_field_index(SCORES), SCORES, pa.array(scores)), folder / PARITY)
    with pytest.raises(ParityError, match=r"'sasrec'.* 1 of 64 histories.*history 3"):
        LoadedBundle.load(republish(folder))


def test_a_channel_without_parity_rows_is_refused(channel_folder, tmp_path, republish):
    folder = shutil.copytree(channel_folder, tmp_path / "bundle")
    (folder / PARITY).unlink()
    with pytest.raises(BundleError, match="cannot be checked"):
        LoadedBundle.load(republish(folder))


def test_an_encoder_has_the_width_of_its_weights(tmp_path):
    """Settings without a width leave it to the log that was trained on, which a server does not see."""
    trained = SequenceEncoder(9, EncoderSettings(width=24))
    checkpoint.save(trained, tmp_path / WEIGHTS)
    (tmp_path / CHANNEL_SETTINGS).write_text(json.dumps({"encoder": EncoderSettings().model_dump()}), encoding="utf-8")
    assert torch.equal(channels.encoder(tmp_path).items.weight, trained.items.weight)
