"""What is shipped leads to the new bundle, and a command that is run again takes none of it away."""

from __future__ import annotations

from pathlib import Path

from contracts.artifacts import Artifacts
from contracts.bundle import bundle, delta
from sluice.release.shipped_delta import FOLDER, ship_delta


def publish(content: str, place: Path) -> str:
    """The version."""
    build = place.parent / f"build-{content}"
    build.mkdir(parents=True, exist_ok=True)
    (build / "weights").write_text(content)
    return bundle.publish(build, place, "shop").version


def test_the_same_again_before_and_after_it_was_applied_leaves_the_delta(tmp_path: Path) -> None:
    out, served = Artifacts(tmp_path / "out"), tmp_path / "served"
    old, new = publish("old", served), publish("new", out.bundle)
    for _ in range(2):
        assert ship_delta(served, out).endswith(f"leads from {old} to {new}")
    made = delta.read(out.out / FOLDER)
    delta.apply(served, out.out / FOLDER, served)
    assert ship_delta(served, out) == f"{served} is {new} already, and {out.out / FOLDER} stays as it was"
    assert delta.read(out.out / FOLDER) == made
