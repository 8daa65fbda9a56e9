from __future__ import annotations

from pathlib import Path

import pytest

from contracts.config.config import load, parse
from models.tuning import tuned_config
from models.tuning.tuned_config import retuned

HEAD = 'name = "x"\nlog = { path = "p" }\nlabel = { expression = "c" }\n'
FIELDS = '\n[[fields]]\nname = "item"\nkind = "categorical"\nside = "item"\n'
FOUND = {"learning_rate": 0.00123, "hidden": (64, 32), "batch_size": 512}


def test_settings_replace_those_of_the_section_and_all_else_stays(text: str) -> None:
    changed = retuned(text, FOUND)
    train = parse(changed).train
    assert (train.learning_rate, train.hidden, train.batch_size, train.epochs) == (0.00123, (64, 32), 512, 3)
    before = parse(text)
    assert parse(changed).model_copy(update={"train": before.train}) == before
    for line in ("# A file that somebody wrote.", "[train]            # of the rankers", "epochs = 3", "[serve]"):
        assert line in changed.splitlines()
    assert "far too low" not in changed


@pytest.mark.parametrize("section", [
    "", "[train]\n", "[train]\nhidden = [8, 8]", "[ train ]  # mine\nepochs = 2\n\n[serve]\nport = 1\n"])
def test_wherever_the_section_stands(section: str) -> None:
    text = HEAD + FIELDS + section.replace("port = 1", "default_limit = 5")
    before, after = parse(text).train, parse(retuned(text, FOUND)).train
    assert after == before.model_copy(update=FOUND)


@pytest.mark.parametrize("inline", ["train = { epochs = 2, hidden = [9], schedule = \"linear\" }\n",
                                    "train.epochs = 2\ntrain.hidden = [9]\ntrain.schedule = 'linear'\n"])
def test_a_section_in_the_head_of_the_file_is_moved_to_its_end(inline: str) -> None:
    train = parse(retuned(HEAD + inline + FIELDS, FOUND)).train
    assert (train.epochs, train.hidden, train.schedule, train.learning_rate) == (2, (64, 32), "linear", 0.00123)


def test_text_that_only_looks_like_a_section_is_none() -> None:
    text = HEAD.replace('"c"', '"""\n[train]\nhidden = 1\n"""') + FIELDS
    changed = retuned(text, FOUND)
    assert parse(changed).label == parse(text).label
    assert parse(changed).train.hidden == (64, 32)


def test_without_settings_the_file_is_the_configuration_as_it_is(text: str, tmp_path: Path) -> None:
    assert tuned_config.write(tmp_path / "a" / "tuned.toml", text, {}).read_text() == text
    assert load(tuned_config.write(tmp_path / "tuned.toml", text, FOUND)).train.batch_size == 512
