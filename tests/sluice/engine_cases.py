"""Configurations of which every engine must make the same: the examples, on made-up rows in their formats, random ones,
and one of a key with 30% of the events.

    python -m tests.sluice.engine_cases FOLDER MASTER      all of them that lie in FOLDER, in one session on MASTER
    python -m tests.sluice.engine_cases FOLDER MASTER cluster      CLUSTERED alone; output in FOLDER/NAME/cluster

The suite leaves out fields that are like two others of their example, takes the READ ones no further than their
events, and tries a random log and the heavy key on a cluster; `make cluster-test` tries all, whole, and more random
logs.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from contracts.artifacts import WINDOWS, Artifacts
from contracts.config.config import Config, load
from contracts.config.fields import FieldConfig
from contracts.config.log import SparkSettings
from tests.pipelines import skewed_log, spark_jobs
from tests.pipelines.spark_processes import SMALL_SPARK
from tests.sluice.plain_rows import write_adult, write_bank
from tests.sluice.public_rows import write_avazu, write_beauty, write_criteo, write_frappe, write_taobao
from tests.sluice.random_logs import write_case

EXAMPLES = Path(__file__).parents[2] / "examples"
ALL = os.environ.get("SLUICE_CLUSTER_EXAMPLES") == "all"
SEEDS = range(6 if ALL else 3)  # as many of every format
READ = () if ALL else (
    "amazon_beauty", "avazu", "bank", "criteo", "frappe", "marketplace_longtail", "marketplace_months",
    "marketplace_tastes", "movielens_100k_seen")
# in ways of their own, and then as others are
INGESTED = "ingested.json"  # the figures of a case that is read alone
SKEWED = "skewed"  # tests/pipelines/skewed_log.py
DAILY = "random_2"  # of which a day is made again
LATE, LATE_DAY = "random_1", "2026-01-03"  # of which clicks on a day are learned after the first run
UNTIL = "2026-01-04"  # the last day but one of that log


def write_movielens(folder: Path) -> Path:
    draw = np.random.default_rng(6)
    ratings = [f"{draw.integers(1, 30)}\t{draw.integers(1, 40)}\t{draw.integers(1, 6)}\t{874724710 + 1800 * row}"
               for row in range(900)]
    (folder / "u.data").write_text("\n".join(ratings) + "\n")
    users = [f"{user}|{20 + user}|{'MF'[user % 2]}|artist|{user:05d}" for user in range(1, 30)]
    (folder / "u.user").write_text("\n".join(users) + "\n")
    items = [f"{item}|Café {item} (1995)|0{1 + item % 9}-Jan-{1940 + item}||http://x|" + "|".join(
        str(int(kind == item % 19)) for kind in range(19)) for item in range(1, 40)]
    (folder / "u.item").write_text("\n".join(items) + "\n", encoding="latin-1")
    return folder


def write_marketplace(folder: Path) -> Path:
    """Of the example that the folder above is called."""
    from pipelines.marketplace.marketplace import simulate

    config = load(EXAMPLES / f"{folder.parent.name}.toml")
    assert config.simulation is not None
    simulation = config.simulation.model_copy(update={"events": 3000, "users": 300, "items": 200})
    simulate(simulation, config.seed, folder, folder.with_name("truth"))
    return folder


WRITERS: dict[str, Callable[[Path], Path]] = {
    "adult": lambda folder: write_adult(folder, 400), "amazon_beauty": lambda folder: write_beauty(folder, 20),
    "avazu": lambda folder: write_avazu(folder, 800),
    "bank": lambda folder: write_bank(folder, 400), "criteo": lambda folder: write_criteo(folder, 800),
    "frappe": lambda folder: write_frappe(folder, 800),
    "marketplace": write_marketplace, "marketplace_longtail": write_marketplace,
    "marketplace_months": write_marketplace, "marketplace_tastes": write_marketplace, "movielens_100k": write_movielens,
    "movielens_100k_seen": write_movielens, "taobao_ads": write_taobao,
}
PAIRS = "marketplace"  # of which the pair graph is made, too


EVERY = (*WRITERS, *(f"random_{seed}" for seed in SEEDS))
CLUSTERED = (*(EVERY if ALL else ("random_0",)), SKEWED)


def write_cases(folder: Path) -> list[str]:
    """FOLDER/NAME/data and config.json of each; returns the names."""
    for name, write in WRITERS.items():
        (folder / name / "data").mkdir(parents=True)
        write(folder / name / "data")
        whole = load(EXAMPLES / f"{name}.toml")
        (folder / name / "config.json").write_text((whole if ALL else thinned(whole)).model_dump_json())
    (folder / SKEWED / "data").mkdir(parents=True)
    skewed_log.write_log(folder / SKEWED / "data")
    (folder / SKEWED / "config.json").write_text(skewed_log.configuration("embedded").model_dump_json())
    for seed in SEEDS:
        place = folder / f"random_{seed}"
        (place / "config.json").write_text(json.dumps(write_case(place / "data", seed)))
    return [path.name for path in cases(folder)]


def thinned(config: Config) -> Config:
    """Without the fields that are, but for name and column, like two before them, and that nothing else names."""
    named = {part.partition("#")[0] for field in config.fields for part in (*field.parts, field.of or "")}
    elsewhere = config.model_dump_json(exclude={"fields"})
    fields: list[FieldConfig] = []
    for field in config.fields:
        alike = sum(_alike(field) == _alike(other) for other in fields)
        if alike < 2 or field.name in named or f'"{field.name}"' in elsewhere:
            fields.append(field)
    return Config.model_validate(config.model_dump() | {"fields": [field.model_dump() for field in fields]})


def _alike(field: FieldConfig) -> str:
    return field.model_dump_json(exclude={"name", "column"})


def cases(folder: Path) -> Iterator[Path]:
    return iter(sorted(path.parent for path in folder.glob("*/config.json")))


def config_of(case: Path) -> Config:
    return Config.model_validate_json((case / "config.json").read_text())


def run_cases(folder: Path, engine: str) -> None:
    """FOLDER/NAME/ENGINE of each, a day of one of them again, one with late clicks, and that as its last day began,
    read alone; SKEWED on the embedded engine alone."""
    from pipelines.jobs.feature_job import make_features
    from pipelines.jobs.pair_job import write_pair_graph

    for case in cases(folder):
        if case.name in READ:
            read_alone(case, case / "data", engine)
        elif engine == "embedded" or case.name != SKEWED:
            make_features(config_of(case), case / "data", Artifacts(case / engine))
    write_pair_graph(config_of(folder / PAIRS), Artifacts(folder / PAIRS / engine))
    case, again = folder / DAILY, Artifacts(folder / DAILY / f"{engine}-day")
    day = without_other_days(Artifacts(case / engine), again)
    make_features(config_of(case), case / "data", again, day=day)
    case, again = folder / LATE, Artifacts(folder / LATE / f"{engine}-late")
    shutil.copytree(case / engine, again.out)
    late = with_late_clicks(case)
    make_features(config_of(case), late, again)
    read_alone(case, late, f"{engine}-until", UNTIL)


def read_alone(case: Path, data: Path, name: str, until: str | None = None) -> None:
    """Ingest into CASE/NAME, the figures in INGESTED."""
    from pipelines.engine.session import session
    from pipelines.ingest.ingest import ingest

    config, out = config_of(case), Artifacts(case / name)
    with session(config.spark, name) as spark:
        (out.out / INGESTED).write_text(ingest(spark, config, data, out, until=until).model_dump_json())


def with_late_clicks(case: Path) -> Path:
    """Its data with three more clicks, on impressions of LATE_DAY that had none, known a day after these."""
    late = case / "data-late"
    shutil.copytree(case / "data", late, dirs_exist_ok=True)
    clicks = pq.read_table(case / "data" / "clicks.parquet")
    lines = (case / "data" / "log.json").read_text(encoding="utf-8").splitlines()
    shown = [json.loads(line) for line in lines if line.endswith("}") and LATE_DAY in line]
    open_ = [row for row in shown if row["time"] and row["time"].startswith(LATE_DAY)
             and row["id"] not in clicks["id"].to_pylist()]
    times = [datetime.fromisoformat(f"{row['time']}+00:00") for row in open_[:3]]
    more = pa.table({"id": [row["id"] for row in open_[:3]], "at": [time + timedelta(minutes=10) for time in times],
                     "known": [time + timedelta(days=1) for time in times]})
    pq.write_table(pa.concat_tables([clicks, more.cast(clicks.schema)]), late / "clicks.parquet")
    return late


def without_other_days(made: Artifacts, again: Artifacts) -> str:
    """Copies `made` to `again`, where the features and examples of one training day alone, the result, can be read."""
    shutil.copytree(made.out, again.out)
    day = sorted(again.examples("train").glob("day=*"))[1].name
    for place in (again.features, *(again.examples(window) for window in WINDOWS)):
        for file in place.glob("day=*/*.parquet"):
            if file.parent.name != day:
                file.write_bytes(b"-" * file.stat().st_size)
    return day.removeprefix("day=")


def run_examples(folder: Path, engine: str) -> None:
    """FOLDER/NAME/ENGINE of CLUSTERED."""
    from pipelines.jobs.feature_job import make_features

    for name in CLUSTERED:
        make_features(config_of(folder / name), folder / name / "data", Artifacts(folder / name / engine))


def run_all(folder: Path, master: str, engine: str = "spark") -> None:
    from pipelines.engine import embedded
    from pipelines.engine.session import open_session

    spark = open_session(SparkSettings(master=master, settings=SMALL_SPARK), "engine-cases")
    (run_cases if engine == "spark" else run_examples)(folder, engine)
    if engine == "spark":
        spark_jobs.record(spark, folder)
    embedded.stop(spark)


if __name__ == "__main__":
    run_all(Path(sys.argv[1]), *sys.argv[2:])
