from __future__ import annotations

import tomllib
from pathlib import Path

from sluice.init.column_types import typed_columns
from sluice.init.field_guess import GuessedField
from sluice.init.table_text import WIDTH, comment, derived, section, source, text_value
from sluice.table_samples.table_sample import read_sample


def test_a_source_says_how_its_text_is_read(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("amount;the code\n1,5;7\n2,5;?\n")
    sample = read_sample(path)
    columns = typed_columns(sample)
    amount = GuessedField(columns[0], "amount", "numeric", "context")
    code = GuessedField(columns[1], "code_value", "numeric", "context", derive="try_cast(`the code` AS DOUBLE)")
    found = tomllib.loads("\n".join(source(sample, columns, [amount, code])))
    assert found["options"] == {"sep": ";", "header": "true", "nullValue": "?"}
    assert found["schema_ddl"] == "amount STRING, `the code` STRING"
    assert dict(derived(columns, [amount, code], frozenset(), parquet=False)) == {
        "amount": "try_cast(replace(amount, ',', '.') AS DOUBLE)", "code_value": "try_cast(`the code` AS DOUBLE)"}


def test_texts_and_comments_are_toml() -> None:
    odd = 'a "b" \\ ü'
    assert tomllib.loads(f"x = {text_value(odd)}")["x"] == odd
    assert tomllib.loads("\n".join(section("log.derive", {"a": "b'"}))) == {"log": {"derive": {"a": "b'"}}}
    assert section("log.derive", {}) == []
    lines = comment("word " * 60 + "\n[section]").splitlines()
    assert all(line.startswith("# ") and len(line) <= WIDTH + 2 for line in lines)
