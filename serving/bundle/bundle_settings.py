"""The sections of a run's configuration that a server needs, as written into its bundle."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from contracts.config.config import Config
from contracts.config.rules import Rule
from contracts.config.section import Section
from contracts.config.stages import Prerank, Rerank, Retrieve, Serve
from contracts.config.training import Train
from contracts.errors import BundleError
from contracts.features.feature_spec import FeatureSpec

FILE = "settings.json"


class BundleSettings(Section):
    """`ranker` names the served model; `auction` says that slates are ranked by bid x probability."""

    ranker: str
    auction: bool
    train: Train
    retrieve: Retrieve
    prerank: Prerank
    rerank: Rerank
    serve: Serve
    rules: tuple[Rule, ...] = ()

    @classmethod
    def of(
        cls, config: Config, spec: FeatureSpec, ranker: str, quotas: Mapping[str, int] | None = None,
        cold: Literal["two_tower", "popularity"] = "popularity",
    ) -> BundleSettings:
        """The run's sections, with the pre-ranker's kind decided, and whether recent items come again; `ranker` is the
        model that training chose, `quotas` are those chosen where the configuration leaves one open, and `cold` what
        validation found better for those of whom nothing is known."""
        auction = spec.has_bid and config.rerank.kind in ("auto", "auction")
        prerank = config.prerank.model_copy(update={"kind": config.prerank_kind})
        again = config.label.repeat if config.retrieve.repeat is None else config.retrieve.repeat
        retrieve = config.retrieve.with_quotas(quotas or {}).model_copy(
            update={"repeat": again, "cold": config.retrieve.cold or cold})
        return cls(ranker=ranker, auction=auction, train=config.train, retrieve=retrieve, prerank=prerank,
                   rerank=config.rerank, serve=config.serve, rules=config.rules)

    def write(self, folder: Path) -> None:
        (folder / FILE).write_text(self.model_dump_json(indent=1), encoding="utf-8")

    @classmethod
    def read(cls, folder: Path) -> BundleSettings:
        """Raises BundleError where there are none, or where they hold another version's keys."""
        try:
            return cls.model_validate_json((folder / FILE).read_text(encoding="utf-8"))
        except OSError as error:
            raise BundleError(f"no {FILE} in {folder} ({error.strerror}); assemble the bundle again") from None
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"])
            raise BundleError(f"{folder / FILE}: {where}: {first['msg']}; assemble the bundle again") from None
