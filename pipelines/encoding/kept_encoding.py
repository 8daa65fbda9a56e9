"""The encoding of an earlier run or bundle, kept as it is: ids, bins and scales.

So every row of a table of weights stands for what it stood for, and a delta of the two bundles holds what was trained.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from contracts.artifacts import Artifacts
from contracts.atomic_write import put_in_place
from contracts.config.config import Config
from contracts.errors import ConfigError
from contracts.features import vocabulary
from contracts.features.feature_spec import SPEC_FILE, FeatureSpec


def keep(source: Path, config: Config, out: Artifacts) -> FeatureSpec:
    """Replaces the folder `encoding` by that of `source`, a run's output, its `encoding` or a bundle; pair rates are
    left out, which `sluice pretrain` names anew. Raises ConfigError where the configuration has other fields.
    """
    folder = _encoding(source)
    stored = FeatureSpec.read(folder)
    spec = stored.model_copy(update={
        "fields": tuple(field for field in stored.fields if field.kind != "statistic"), "pair_model": None})
    _require_same(config, spec, folder)
    aside = out.encoding.with_name(f".{out.encoding.name}.staging")
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir(parents=True)
    vocabulary.copy_all(folder, aside)
    spec.write(aside)
    put_in_place(aside, out.encoding)
    return spec


def _encoding(source: Path) -> Path:
    run = Artifacts(source).encoding
    return run if (run / SPEC_FILE).exists() else source


def _require_same(config: Config, spec: FeatureSpec, folder: Path) -> None:
    """Crosses may be the encoding's alone: a search found them."""
    wanted = {name for field in config.fields for name in field.features()}
    kept = {field.name for field in spec.fields}
    plain = {field.name for field in spec.fields if field.kind != "cross"}
    differing = sorted((wanted - kept) | (plain - wanted))
    if differing:
        raise ConfigError(f"the encoding at {folder} and the configuration differ in {', '.join(differing[:5])}: leave "
                          "--encoding out, so that one is fitted, or give the fields that it has")
