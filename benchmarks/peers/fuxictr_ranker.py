"""One ranker of FuxiCTR, trained by FuxiCTR's own loop, loader, optimiser and layers; runs in its environment alone.

    run(PLAN)       PLAN: a file of benchmarks/peers/plan.py

FuxiCTR (github.com/reczoo/FuxiCTR, Apache-2.0) keeps its ranking models in its repository and not in the package that
is installed, so that they are put together here of the package's layers: DNN, DCNv2 (parallel, full rank), DeepFM, and
FinalMLP (gates without context, as many heads as the platform's: with one it did not converge on Adult), with the
initialisation and the optimiser that its base class gives all.
"""

from __future__ import annotations

import math
import resource
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from fuxictr.features import FeatureMap
from fuxictr.pytorch.dataloaders import RankDataLoader
from fuxictr.pytorch.layers import CrossNetV2, FactorizationMachine, FeatureEmbedding, MLP_Block
from fuxictr.pytorch.models import BaseModel
from fuxictr.pytorch.torch_utils import seed_everything
from model_zoo.LongCTR.FinalMLP.FinalMLP import FeatureSelection, InteractionAggregation
from torch import Tensor, nn

from benchmarks.peers.plan import Outcome, Plan

DATASET, HEADS = "rows", 8


class Ranker(BaseModel):
    """FuxiCTR's base class with a clock: seconds of evaluation, and when the best weights were saved."""

    def __init__(self, features: FeatureMap, settings: dict[str, Any], plan: Plan) -> None:
        super().__init__(features, **settings)
        self.embedding_layer = FeatureEmbedding(features, plan.width)
        self.inputs = features.sum_emb_out_dim()
        self.evaluating, self.best_at, self.best_epoch = 0.0, 0.0, 0
        self.assemble(features, plan)
        self.compile("adam", "binary_crossentropy", plan.learning_rate)
        self.reset_parameters()
        self.model_to_device()

    def assemble(self, features: FeatureMap, plan: Plan) -> None:
        raise NotImplementedError

    def logits(self, inputs: dict[str, Tensor], vectors: Tensor) -> Tensor:
        """vectors [B, F, D] -> [B, 1]."""
        raise NotImplementedError

    def mlp(self, plan: Plan, out: int | None) -> nn.Module:
        return MLP_Block(
            input_dim=self.inputs, output_dim=out, hidden_units=plan.hidden, hidden_activations="ReLU",
            output_activation=None, dropout_rates=plan.dropout, batch_norm=True)

    def forward(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        inputs = self.get_inputs(batch)
        return {"y_pred": self.output_activation(self.logits(inputs, self.embedding_layer(inputs)))}

    def eval_step(self) -> None:
        begin = time.perf_counter()
        super().eval_step()
        self.evaluating += time.perf_counter() - begin

    def save_weights(self, checkpoint: str) -> None:
        super().save_weights(checkpoint)
        self.best_at, self.best_epoch = time.perf_counter(), self._epoch_index + 1


class Dnn(Ranker):
    def assemble(self, features: FeatureMap, plan: Plan) -> None:
        self.deep = self.mlp(plan, 1)

    def logits(self, inputs: dict[str, Tensor], vectors: Tensor) -> Tensor:
        return self.deep(vectors.flatten(1))


class DcnV2(Ranker):
    def assemble(self, features: FeatureMap, plan: Plan) -> None:
        self.cross = CrossNetV2(self.inputs, plan.cross_layers)
        self.deep = self.mlp(plan, None)
        self.fc = nn.Linear(self.inputs + plan.hidden[-1], 1)

    def logits(self, inputs: dict[str, Tensor], vectors: Tensor) -> Tensor:
        flat = vectors.flatten(1)
        return self.fc(torch.cat([self.cross(flat), self.deep(flat)], dim=1))


class DeepFm(Ranker):
    def assemble(self, features: FeatureMap, plan: Plan) -> None:
        self.fm = FactorizationMachine(features)
        self.deep = self.mlp(plan, 1)

    def logits(self, inputs: dict[str, Tensor], vectors: Tensor) -> Tensor:
        return self.fm(inputs, vectors) + self.deep(vectors.flatten(1))


class FinalMlp(Ranker):
    def assemble(self, features: FeatureMap, plan: Plan) -> None:
        self.gates = FeatureSelection(features, self.inputs, plan.width, [64])
        self.first, self.second = self.mlp(plan, None), self.mlp(plan, None)
        width = plan.hidden[-1]
        self.fusion = InteractionAggregation(width, width, num_heads=math.gcd(HEADS, width))

    def logits(self, inputs: dict[str, Tensor], vectors: Tensor) -> Tensor:
        left, right = self.gates(inputs, vectors.flatten(1))
        return self.fusion(self.first(left), self.second(right))


MODELS: dict[str, type[Ranker]] = {"dnn": Dnn, "dcn_v2": DcnV2, "deep_fm": DeepFm, "final_mlp": FinalMlp}


def run(path: str) -> None:
    """Trains, and writes probabilities and outcome."""
    plan = Plan.read(path)
    torch.set_num_threads(plan.threads)
    seed_everything(plan.seed)
    features = FeatureMap(DATASET, plan.rows)
    features.load(str(Path(plan.rows, "feature_map.json")), {"embedding_dim": plan.width})
    files = {f"{name}_data": str(Path(plan.rows, f"{name}.npz")) for name in ("train", "valid", "test")}
    loading = {"data_format": "npz", "batch_size": plan.batch_size, **files}
    Path(plan.out, DATASET).mkdir()  # where its base class keeps the best weights
    model = MODELS[plan.model](features, settings_of(plan), plan)
    train, validation = RankDataLoader(features, stage="train", **loading)
    begin = time.perf_counter()
    model.fit(train, validation_data=validation, epochs=plan.epochs, max_gradient_norm=plan.clip_norm)
    seconds, epochs = time.perf_counter() - begin - model.evaluating, model._epoch_index + 1
    np.save(Path(plan.out, "validation.npy"), model.predict(validation))
    np.save(Path(plan.out, "test.npy"), model.predict(RankDataLoader(features, stage="test", **loading)))
    Outcome(rows_per_second=plan.training_rows * epochs / seconds, seconds_to_best=model.best_at - begin, epochs=epochs,
            best_epoch=model.best_epoch, peak_mib=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
            ).write(plan.out)


def settings_of(plan: Plan) -> dict[str, Any]:
    """What the base class takes. Its penalty is half the regulariser times the sum of squares, as Plan.l2 / N."""
    return {"model_id": "ranker", "model_root": plan.out, "gpu": -1, "task": "binary_classification", "monitor": "AUC",
            "monitor_mode": "max", "early_stop_patience": plan.patience, "metrics": ["AUC"], "verbose": 0,
            "embedding_regularizer": plan.l2 / plan.training_rows or None, "net_regularizer": None}
