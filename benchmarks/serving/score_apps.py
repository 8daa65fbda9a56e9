"""The work of `Score` behind other people's servers: the same bundle, the same code in process, one worker each.

Runs in an environment that has them (benchmarks/serving/score_peers.py). MLflow and BentoML load this very file.

    python -m benchmarks.serving.score_apps fastapi BUNDLE PORT
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from serving.bundle.loaded_bundle import LoadedBundle
from serving.request.deadline import Deadline
from serving.request.query import ScoreQuery
from serving.stages.funnel import Funnel

BUNDLE = "SLUICE_SCORED_BUNDLE"
HOST = "127.0.0.1"


class Scored(BaseModel):
    """A request to FastAPI."""

    user: str
    items: list[str]


class BundleScorer:
    """What every server here calls."""

    def __init__(self, folder: Path) -> None:
        self._funnel = Funnel(LoadedBundle.load(folder))

    @classmethod
    def named(cls) -> BundleScorer:
        """Of the bundle that the environment names, in a process that somebody else has started."""
        return cls(Path(os.environ[BUNDLE]))

    def score(self, user: str, items: list[str]) -> list[float]:
        """Probabilities, in the order of the items."""
        query = ScoreQuery(user, tuple(items), {"context0": "v1"})
        return self._funnel.begin_score(query, Deadline(None)).complete().probabilities


def fastapi(folder: Path, port: int) -> None:
    """One uvicorn process; the work is done in its loop, which is faster than its thread pool."""
    import uvicorn
    from fastapi import FastAPI

    app, scorer = FastAPI(), BundleScorer(folder)

    @app.post("/score")
    async def score(asked: Scored) -> dict[str, list[float]]:
        return {"probabilities": scorer.score(asked.user, asked.items)}

    uvicorn.run(app, host=HOST, port=port, log_level="warning")


def litserve(folder: Path, port: int) -> None:
    """One worker process on the processor."""
    import litserve

    from benchmarks.serving import score_apps  # by name: its processes look the class up

    api: Any = score_apps.LitApi
    server = litserve.LitServer(api(), accelerator="cpu", workers_per_device=1)
    server.run(host=HOST, port=port, num_api_servers=1, generate_client_file=False, log_level="warning")


def _lit_api() -> Any:
    import litserve

    class LitApi(litserve.LitAPI):  # type: ignore[misc]
        def setup(self, device: str) -> None:
            self.scorer = BundleScorer.named()

        def decode_request(self, request):  # type: ignore[no-untyped-def]  # an annotation would be its body's schema
            return request

        def predict(self, asked: dict[str, Any]) -> list[float]:
            return self.scorer.score(asked["user"], asked["items"])

        def encode_response(self, found: list[float]) -> dict[str, list[float]]:
            return {"probabilities": found}

    LitApi.__qualname__ = "LitApi"
    return LitApi


def bentoml(folder: Path, port: int) -> None:
    """One worker of a service."""
    _replace("bentoml", "serve", "benchmarks.serving.score_apps:BentoService", "--host", HOST, "--port", str(port))


def _bento_service() -> Any:
    import bentoml

    class Scoring:
        def __init__(self) -> None:
            self.scorer = BundleScorer.named()

        def score(self, user: str, items: list[str]) -> list[float]:
            return self.scorer.score(user, items)

    Scoring.score.__annotations__ = {"user": str, "items": list[str], "return": list[float]}
    Scoring.score = bentoml.api(Scoring.score)  # type: ignore[method-assign]
    return bentoml.service(workers=1)(Scoring)


_MADE = {"LitApi": _lit_api, "BentoService": _bento_service}


def __getattr__(name: str) -> Any:
    """Classes of libraries that only their own server needs: made, once, when they are looked for."""
    if name not in _MADE:
        raise AttributeError(name)
    globals()[name] = made = _MADE[name]()
    return made


def mlflow(folder: Path, port: int) -> None:
    """Its scoring server, one worker, a model from code: this file."""
    import mlflow.pyfunc

    model = folder.parent / f"mlflow-model-{port}"
    mlflow.pyfunc.save_model(str(model), python_model=_mlflow_model())
    _replace("mlflow", "models", "serve", "--model-uri", str(model), "--env-manager", "local", "--host", HOST,
             "--port", str(port), "--workers", "1")


def _mlflow_model() -> Any:
    from mlflow.pyfunc import PythonModel

    class Model(PythonModel):  # type: ignore[misc]
        """A table of users and items, as MLflow's server gives it."""

        def load_context(self, context: Any) -> None:
            from benchmarks.serving.score_apps import BundleScorer

            self.scorer = BundleScorer.named()

        def predict(self, context: Any, model_input: Any, params: Any = None) -> list[float]:
            return self.scorer.score(str(model_input["user"].iloc[0]), model_input["item"].tolist())

    return Model()


def ray_serve(folder: Path, port: int) -> None:
    """One replica behind one proxy."""
    import ray
    from ray import serve
    from starlette.requests import Request

    class Scoring:
        def __init__(self, bundle: str) -> None:
            self.scorer = BundleScorer(Path(bundle))

        async def __call__(self, request: Request) -> dict[str, list[float]]:
            asked = await request.json()
            return {"probabilities": self.scorer.score(asked["user"], asked["items"])}

    ray.init(num_cpus=2, include_dashboard=False, configure_logging=False, log_to_driver=False)
    serve.start(http_options={"host": HOST, "port": port})
    deployed: Any = serve.deployment(num_replicas=1, max_ongoing_requests=100)(Scoring)
    serve.run(deployed.bind(str(folder)), route_prefix="/score", blocking=True)


def _replace(*command: str) -> None:
    """This process becomes a module of the same environment, so that its id stays that of the server."""
    os.execv(sys.executable, [sys.executable, "-m", *command])


PEERS = {"fastapi": fastapi, "litserve": litserve, "bentoml": bentoml, "mlflow": mlflow, "ray_serve": ray_serve}


def start(python: Path, peer: str, folder: Path, port: int, log: Path) -> subprocess.Popen[bytes]:
    """In a session of its own, so that all its processes can be ended together. MLflow starts uvicorn by its name; it
    may lie in the environment that the peers' own one is on top of."""
    root = str(Path(__file__).parents[2])
    path = os.pathsep.join((str(python.parent), str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)))
    environment = {**os.environ, "PATH": path, "PYTHONPATH": root, BUNDLE: str(folder), "OMP_NUM_THREADS": "1",
                   "BENTOML_DO_NOT_TRACK": "true", "RAY_USAGE_STATS_ENABLED": "0"}
    command = [str(python), "-m", "benchmarks.serving.score_apps", peer, str(folder), str(port)]
    with log.open("w") as sink:
        return subprocess.Popen(command, env=environment, cwd=root, stdout=sink, stderr=sink, start_new_session=True)


if __name__ == "__main__":
    PEERS[sys.argv[1]](Path(sys.argv[2]), int(sys.argv[3]))
