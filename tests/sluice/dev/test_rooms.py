"""Rooms of a small house: files, lines and arrows."""

from __future__ import annotations

from pathlib import Path

from sluice.dev.rooms import imported_modules, rooms, table


def house(root: Path) -> Path:
    files = {
        "contracts/errors.py": "class SluiceError(Exception): ...\n",
        "models/layers/mlp.py": "from contracts import errors\n\nWIDTH = 4\n",
        "models/layers/losses.py": "from models.layers.mlp import WIDTH\n",
        "models/networks/dnn.py": "def build():\n    from models.layers.mlp import WIDTH\n    import torch\n",
        "models/networks/__init__.py": "",
        "serving/proto/sluice_pb2.py": "made = True\n",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def test_arrows_are_imports_of_other_rooms_wherever_in_a_file_they_stand(tmp_path):
    found = rooms(house(tmp_path))
    assert {name: room.looks_into for name, room in found.items()} == {
        "contracts": set(), "models.layers": {"contracts"}, "models.networks": {"models.layers"}}
    assert found["models.layers"].seen_from == {"models.networks"}


def test_files_and_lines_are_counted_without_empty_faces_and_written_code(tmp_path):
    found = rooms(house(tmp_path))
    assert {name: (room.files, room.lines) for name, room in found.items()} == {
        "contracts": (1, 1), "models.layers": (2, 4), "models.networks": (1, 3)}


def test_a_name_of_a_module_is_told_with_its_module():
    assert set(imported_modules("import os.path\nfrom models.layers import mlp\n")) == {
        "os.path", "models.layers", "models.layers.mlp"}


def test_the_table_has_a_row_a_room(tmp_path):
    lines = table(rooms(house(tmp_path))).splitlines()
    assert lines[0] == "| room | files | lines | looks into | seen from |"
    assert "| models.layers | 2 | 4 | 1 | 1 |" in lines
    assert len(lines) == 2 + 3
