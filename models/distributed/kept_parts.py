"""The parts of a job that follow one another: after a stop those that are finished are read, and the training of the
one that was stopped goes on from its checkpoint.

    FOLDER/NAME.json    the figures of a finished part, and what run they are of
          /NAME/        the checkpoints of its training, until it is finished
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from contracts.atomic_write import write_json
from models.distributed.run_checkpoint import Identity, RunCheckpoint

Figures = TypeVar("Figures")


class KeptParts:
    """Of the run that `identity` names, in `folder`; None keeps nothing. Without `resume` all begins anew."""

    def __init__(
        self, folder: Path | None, seconds: float = 0.0, identity: Identity | None = None, resume: bool = False,
        command: str = "sluice train",
    ) -> None:
        self.folder, self.seconds, self.identity = folder, seconds, dict(identity or {})
        self.resume, self.command = resume, command
        if not resume:
            self.clear()

    def once(self, name: str, kind: Any, make: Callable[[RunCheckpoint | None], Figures]) -> Figures:
        """The part's figures, of pydantic's `kind`: as they were written, else as `make` makes them, whose training is
        kept by what it is given. Raises SluiceError after a SIGTERM in that, when all is written."""
        if self.folder is None:
            return make(None)
        file, adapter = self.folder / f"{name}.json", TypeAdapter(kind)
        try:
            found = json.loads(file.read_text(encoding="utf-8"))
            if found["identity"] == self.identity:
                return adapter.validate_python(found["figures"])
        except (FileNotFoundError, KeyError, TypeError, ValueError, ValidationError):
            pass  # not made yet, or by another version
        kept = RunCheckpoint(self.folder / name, self.seconds, {**self.identity, "part": name}, self.resume,
                             self.command)
        made = make(kept)
        file.parent.mkdir(parents=True, exist_ok=True)
        write_json(file, {"identity": self.identity, "figures": adapter.dump_python(made, mode="json")})
        kept.clear()
        return made

    def clear(self) -> None:
        """What the job made is written: nothing is left to take up."""
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)
