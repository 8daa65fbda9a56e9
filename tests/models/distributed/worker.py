"""What several processes do for tests/models/distributed: `worker.py FOLDER TRAIN VALIDATION`."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import cast

import torch

from contracts.config.training import Train
from contracts.features.feature_spec import FeatureField, FeatureSpec
from models.distributed import data_parallel, exchange
from models.distributed.exchange import Collectives
from models.distributed.run_checkpoint import RunCheckpoint
from models.distributed.shared_candidates import SharedCandidates
from models.distributed.shared_memory import SharedMemory
from models.examples.batches import ExampleSet
from models.jobs.retrieval_training import build_towers
from models.layers.embedding import FusedEmbedding
from models.layers.losses import ClickLoss, RetrievalLoss
from models.layers.own_rows import dealt
from models.layers.position_bias import PositionBias
from models.networks import registry
from models.training import checkpoint, fitting
from models.training.loop import Loop


def main(folder: Path, train: Path, validation: Path) -> None:
    spec, settings = FeatureSpec.read(folder), Train.model_validate_json((folder / "settings.json").read_text())
    if os.environ["WORLD_SIZE"] == "3":
        os.environ["LOCAL_WORLD_SIZE"] = "1"  # as if each were on a machine of its own: by collectives
    world = data_parallel.join(torch.device("cpu"))
    kinds = {2: SharedMemory, 3: Collectives, 4: SharedMemory}
    assert type(exchange.current()) is kinds[world.size]
    torch.manual_seed(1)
    with dealt(*world):
        network = registry.build("dnn", spec, settings)
    result = fitting.fit(network, ExampleSet(train, spec), ExampleSet(validation, spec), settings, 1, positions=4)
    losses = [[epoch.train_loss, epoch.validation_loss] for epoch in result.history]
    checkpoint.save(network, folder / f"dnn{world.rank}of{world.size}.safetensors")
    (folder / f"losses{world.rank}of{world.size}.json").write_text(json.dumps(losses))
    if (folder / "kept").exists():
        taken_up(folder, spec, settings, ExampleSet(train, spec), ExampleSet(validation, spec))
    if world.size == 2:
        products(folder, spec, settings, ExampleSet(train, spec))
        towers_without_a_click(folder, spec, settings, ExampleSet(train, spec), world.rank)
    if world.size > 1:
        towers_of_all_items(folder, spec, settings, ExampleSet(train, spec), ExampleSet(validation, spec))
    while_joined = exchanging()
    data_parallel.leave()
    said = {"joined": while_joined, "left": exchanging()}
    (folder / f"threads{world.rank}of{world.size}.json").write_text(json.dumps(said), encoding="utf-8")


def exchanging() -> list[int]:
    """The policies of the threads that gloo runs in this process."""
    return [os.sched_getscheduler(int(path.parent.name)) for path in Path("/proc/self/task").glob("*/comm")
            if "gloo" in path.read_text(encoding="utf-8")]


def products(folder: Path, spec: FeatureSpec, settings: Train, train: ExampleSet) -> None:
    """Some updates of a network with crosses as products; what left this process, and what that is made of."""
    cross = FeatureField(name="crossed", kind="cross", side="cross", parts=("user_group", "item_group"),
                         representation="product")
    world, spec = data_parallel.current(), spec.model_copy(update={"fields": (*spec.fields, cross)})
    torch.manual_seed(1)
    with dealt(*world):
        network = registry.build("dnn", spec, settings)
    loop = Loop(ClickLoss(network, PositionBias(0)), [network], settings, 1, 1)
    train.hold()
    embedding = cast(FusedEmbedding, network.embedding)
    assert embedding.products is not None
    asked, updates = [0, 0], 0
    for updates, batch in enumerate(train.batches(64, rank=world.rank, world=world.size), 1):
        loop.step(batch)
        rows = embedding.request.rows(batch.request.ids), embedding.candidate.rows(batch.candidate.ids)
        group = next(slot.start for slot in spec.block_ids("request") if slot.name == "user_group")
        item = next(slot.start for slot in spec.block_ids("candidate") if slot.name == "item_group")
        factors = batch.request.ids[:, group], batch.candidate.ids[:, item] + spec.slot("user_group").size
        for place, parts in enumerate((rows, factors)):
            distinct = torch.cat([part.flatten() for part in parts]).unique()
            asked[place] += int((distinct % world.size != world.rank).sum())
        if updates == 12:
            break
    said = {"sent": loop.optimisers.bytes_sent, "asked": asked, "updates": updates,
            "widths": [embedding.weight.shape[1], embedding.products.weight.shape[1]],
            "dense": [sum(p.numel() for p in loop.optimisers.dense), len(loop.optimisers.dense)]}
    loop.optimisers.restore()
    checkpoint.save(network, folder / f"products{world.rank}of{world.size}.safetensors")
    (folder / f"products{world.rank}of{world.size}.json").write_text(json.dumps(said))


def taken_up(folder: Path, spec: FeatureSpec, settings: Train, train: ExampleSet, validation: ExampleSet) -> None:
    """The run that one process left in the middle, to its end."""
    network = registry.build("dnn", spec, settings)
    kept = RunCheckpoint(folder / "kept", 3600.0, {"run": "1"}, resume=True)
    batches: list[int] = []
    fitting.fit(network, train, validation, settings, 1, positions=4, kept=kept,
                      on_batch=lambda done, _: batches.append(done))
    assert batches[0] > 1, "it began anew"
    checkpoint.save(network, folder / f"resumed{torch.distributed.get_rank()}.safetensors")


def towers_without_a_click(folder: Path, spec: FeatureSpec, settings: Train, train: ExampleSet, rank: int) -> None:
    """An update where process 1 has no click, then one where nobody has."""
    torch.manual_seed(1)
    towers = build_towers(spec, settings)
    loop = Loop(RetrievalLoss(towers), [towers], settings, 1, 1)
    batch = next(train.batches(200))
    silent = batch._replace(label=torch.zeros_like(batch.label))
    value, terms = loop.step(silent if rank else batch)
    before = [p.detach().clone() for p in loop.parameters]
    nothing = loop.step(silent)
    assert nothing == (0.0, 0)
    assert all(torch.equal(a, b) for a, b in zip(before, loop.parameters, strict=True))
    loop.optimisers.restore()
    checkpoint.save(towers, folder / f"towers{rank}.safetensors")
    (folder / f"towers{rank}.json").write_text(json.dumps([float(value), terms]))


def towers_of_all_items(
    folder: Path, spec: FeatureSpec, settings: Train, train: ExampleSet, validation: ExampleSet
) -> None:
    """Towers trained as `sluice train` does; then a batch of which process 0 alone has clicks, and others have fewer
    rows."""
    world = data_parallel.current()
    torch.manual_seed(1)
    with dealt(*world):
        towers = build_towers(spec, settings)
    result = fitting.fit_towers(towers, train, validation, settings, 1)
    losses = [[epoch.train_loss, epoch.validation_loss] for epoch in result.history]
    checkpoint.save(towers, folder / f"fitted_towers{world.rank}of{world.size}.safetensors")
    torch.manual_seed(1)
    towers = build_towers(spec, settings)
    batch = next(train.batches(201))
    mine = batch.take(torch.arange(world.rank, 201, world.size))
    silent = mine._replace(label=torch.zeros_like(mine.label))
    value, terms = RetrievalLoss(towers, share=SharedCandidates(world))(silent if world.rank else mine)
    value.backward()
    reached = [parameter.grad for parameter in towers.item.parameters() if parameter.grad is not None]
    total = data_parallel.total([float(value), float(terms)], torch.device("cpu"), world)
    (folder / f"fitted_towers{world.rank}of{world.size}.json").write_text(
        json.dumps({"losses": losses, "total": total, "reached": sum(float(each.norm()) for each in reached)}))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
