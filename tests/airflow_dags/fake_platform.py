"""A platform whose `sluice` writes down what it was told and answers as a test says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

PROGRAM = """#!/bin/sh
for word in "$@"; do printf '%s\\0' "$word"; done >> {log}; printf '\\n' >> {log}
{answers}
"""


class FakePlatform:
    """`answer("rank", 'echo ...; exit 1')` says in shell what a command does; others do nothing, well."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self._log = folder, folder / "calls"
        self._answers: dict[str, str] = {}
        self._monkeypatch = monkeypatch
        self.variables(sluice=str(folder / "sluice"), sluice_spark_master="", sluice_registry="sqlite:///r.db")
        self._write()

    def variables(self, **values: str) -> None:
        """Airflow Variables for as long as the test runs."""
        for name, value in values.items():
            self._monkeypatch.setenv(f"AIRFLOW_VAR_{name.upper()}", value)

    def answer(self, command: str, shell: str) -> None:
        self._answers[command] = shell
        self._write()

    def registered(self, run: str, version: str = "shop-1") -> str:
        """A run's folder with a registration as the platform writes it."""
        entry = {"name": "shop", "number": "1", "alias": "challenger", "registry": "sqlite:///r.db",
                 "tags": {"bundle_version": version, "content_hash": "c0ffee"}}
        return self.wrote(run, json.dumps(entry))

    def wrote(self, run: str, registration: str) -> str:
        path = self.folder / run / "registration" / "summary.json"
        path.parent.mkdir(parents=True)
        path.write_text(registration)
        return str(self.folder / run)

    @property
    def calls(self) -> list[list[str]]:
        """Words of each `sluice` that was started, in order."""
        lines = self._log.read_text().splitlines() if self._log.exists() else []
        return [line.split("\0")[:-1] for line in lines]

    def _write(self) -> None:
        cases = "".join(f"{command}) {shell} ;;\n" for command, shell in self._answers.items())
        program = self.folder / "sluice"
        program.write_text(PROGRAM.format(log=self._log, answers=f'case "$1" in\n{cases}*) ;;\nesac'))
        program.chmod(0o755)
