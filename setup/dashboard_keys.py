"""Whether a dashboard says only what the types of Grafana know: python setup/dashboard_keys.py FILE.json

Needs grafana-foundation-sdk. The file is read into those types and written again; a key that they do not know is not
there any more, or has another value. Ends with 1 and the keys' paths.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from grafana_foundation_sdk.cog import plugins
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard


def unknown(told: Any, understood: Any, path: str = "") -> Iterator[str]:
    """Paths of `told` that are not in `understood` as they are."""
    if isinstance(told, dict) and isinstance(understood, dict):
        for name, value in told.items():
            yield from unknown(value, understood.get(name), f"{path}.{name}")
    elif isinstance(told, list) and isinstance(understood, list) and len(told) == len(understood):
        for number, (one, other) in enumerate(zip(told, understood, strict=True)):
            yield from unknown(one, other, f"{path}[{number}]")
    elif told != understood:
        yield path


def main(path: Path) -> None:
    plugins.register_default_plugins()
    told = json.loads(path.read_text(encoding="utf-8"))
    understood = json.loads(json.dumps(Dashboard.from_json(told), cls=JSONEncoder))
    if found := list(unknown(told, understood)):
        sys.exit(f"{path}: Grafana's types do not know {', '.join(found)}")
    print(f"{path}: {len(told['panels'])} panels")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
