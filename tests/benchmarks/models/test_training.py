from __future__ import annotations

import numpy as np
import torch
from torch import nn

from benchmarks.models.training import dense_rate, layers, main, said, write
from models.layers.linear import Linear
from models.training import precision
from tests.benchmarks.printed_figures import all_finite, last_line, refuses


def test_training_stands_beside_its_products_and_plain_torch(capsys):
    before = torch.get_num_threads()
    main(["--rows", "600", "--batch", "64", "--rounds", "1", "--threads", str(before), "--precisions",
          "fp32", "bf16"])
    text = capsys.readouterr().out
    found = last_line(text)
    assert list(found) == ["dnn_fp32", "floor_fp32", "dnn_bf16", "floor_bf16", "plain"]
    assert all_finite(found)
    assert text.count("of the floor") == 2


def test_the_ratio_is_that_of_medians_in_the_same_precision():
    found = {"dnn_fp32": [1.0, 5.0, 3.0], "floor_fp32": [6.0, 6.0, 9.0], "plain": [2.0]}
    assert "3 samples/s (1 to 5), 0.50 of the floor" in said(found)


def test_the_floor_has_products_alone_and_the_plain_one_all_layers():
    kinds = [type(layer) for layer in layers(Linear, normalised=False)]
    assert set(kinds) == {Linear, nn.ReLU}
    assert kinds.count(Linear) == 4
    assert {nn.BatchNorm1d, nn.Dropout} <= {type(layer) for layer in layers(nn.Linear, normalised=True)}
    assert dense_rate(layers(Linear, normalised=False), "bf16", batch=16, updates=2) > 0


def test_ids_are_skewed(tmp_path):
    examples = write(tmp_path / "train", 5000)
    counts = np.sort(np.bincount(examples.column("c0")))[::-1]
    assert counts[0] > 50 * max(counts[len(counts) // 2], 1)


def test_a_precision_that_the_processor_does_not_multiply_is_left_out(capsys, monkeypatch):
    monkeypatch.setattr(precision, "multiplies_bf16", lambda device: False)
    main(["--rows", "600", "--batch", "64", "--rounds", "1"])
    assert list(last_line(capsys.readouterr().out)) == ["dnn_fp32", "floor_fp32", "plain"]


def test_a_wrong_option_is_refused():
    assert refuses(main, "--batch", "large")
