from __future__ import annotations

import re
import subprocess

from benchmarks.measurement import code, described, processor


def test_a_line_says_what_a_record_needs():
    said = described(["sluice", "bench", "logs", "a file.csv"])
    assert said.startswith("sluice bench logs 'a file.csv'  (20")
    assert re.search(r"; (commit [0-9a-f]{8}( and changes)?|version \S+); ", said)
    assert re.search(r"; \d+ cores of .+, load average \d+\.\d\)$", said)


def test_code_is_a_commit_with_its_changes_or_a_version(tmp_path):
    assert code(tmp_path).startswith("version ")
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b"]
    (tmp_path / "file").write_text("one")
    for command in (["init", "-q"], ["add", "file"], ["commit", "-qm", "first"]):
        subprocess.run([*git, *command], check=True)
    commit = code(tmp_path)
    assert re.fullmatch("commit [0-9a-f]{8}", commit)
    (tmp_path / "packages").mkdir()
    assert code(tmp_path / "packages").startswith("version ")  # installed below somebody's own repository
    (tmp_path / "file").write_text("two")
    assert code(tmp_path) == f"{commit} and changes"


def test_a_processor_has_its_name_where_the_system_knows_one(tmp_path):
    info = tmp_path / "cpuinfo"
    assert processor(info)
    info.write_text("processor\t: 0\nmodel name\t: Fast 9000\nprocessor\t: 1\nmodel name\t: Fast 9000\n")
    assert processor(info) == "Fast 9000"
