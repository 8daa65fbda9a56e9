"""Business rules: what is never shown, pinned, boosted, or capped in a slate. They travel in the bundle's settings."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from pydantic import Field, field_validator, model_validator

from contracts.config import condition
from contracts.config.condition import Condition, OneOf
from contracts.config.section import Section
from contracts.config.stages import AGE, BID, STOCK, Retrieve
from contracts.nearest import did_you_mean

ITEM, PLACEMENT = "item", "placement"  # names of conditions beside the columns
ACTIONS = ("never", "pin", "boost", "cap")


class Rule(Section):
    """One business rule: exactly one of `never`, `pin`, `boost` and `cap`, for requests of which `when` holds.

    never, boost   a condition over `item` (its id), columns of `retrieve.filter_fields` and `retrieve.range_fields`,
                   `bid`, `stock` and `age`, as in `advertiser == "x" and not price < 3`
    pin            an item's id
    cap            a column of `retrieve.filter_fields`, of each of whose values a slate holds at most so many

    `when` is such a condition over `placement` (its name, "" where the request has none) and fields of the context.
    docs/how-to/business_rules.md says how rules work together.
    """

    name: str = Field(min_length=1, max_length=100, description="as explanations say it")
    when: str | None = Field(None, description="condition over the request; none given: always")
    never: str | None = Field(None, description="condition: such items are not shown")
    pin: str | None = Field(None, min_length=1, description="this item is shown, at `position`")
    position: int | None = Field(None, ge=1, description="of a pinned item, from 1; none given: 1")
    boost: str | None = Field(None, description="condition: of such items the score counts `factor` times")
    factor: float | None = Field(None, gt=0, le=1000, description="of a boost; below 1 it holds items back")
    cap: str | None = Field(None, description="column: `most` items of one value in a slate")
    most: int | None = Field(None, ge=1, description="of a cap")

    @field_validator("when", "never", "boost")
    @classmethod
    def _is_condition(cls, text: str | None) -> str | None:
        if text is not None:
            condition.parse(text)
        return text

    @model_validator(mode="after")
    def _one_action(self) -> Rule:
        given = [name for name in ACTIONS if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(f"rule {self.name!r} has {len(given)} of never, pin, boost and cap; give exactly one")
        for action, detail in (("boost", "factor"), ("cap", "most")):
            if (action in given) != (getattr(self, detail) is not None):
                raise ValueError(f"rule {self.name!r}: {detail} belongs to {action}; give both or neither")
        if self.position is not None and self.pin is None:
            raise ValueError(f"rule {self.name!r}: position belongs to pin; leave it out")
        return self

    @property
    def items(self) -> Condition | None:
        """Of `never` or `boost`."""
        text = self.never if self.never is not None else self.boost
        return None if text is None else condition.parse(text)

    @property
    def request(self) -> Condition | None:
        """As `when` says."""
        return None if self.when is None else condition.parse(self.when)


def rule_problems(rules: Sequence[Rule], retrieve: Retrieve, context: Collection[str]) -> list[str]:
    """A sentence for each name that is used twice, or that no column or field has."""
    names = [rule.name for rule in rules]
    problems = [f"rule {name!r} is given twice" for name in dict.fromkeys(names) if names.count(name) > 1]
    for rule in rules:
        where = f"rule {rule.name!r}"
        numbers = {*retrieve.numbers, BID, STOCK, *([AGE] if retrieve.created_field else [])}
        problems += _unknown(where, rule.items, {ITEM, *retrieve.filter_fields}, numbers)
        problems += _unknown(where, rule.request, {PLACEMENT, *context}, set(context))
        if rule.cap is not None and rule.cap not in retrieve.filter_fields:
            problems.append(f"{where}: cap {rule.cap!r} is not among retrieve.filter_fields"
                            f"{did_you_mean(rule.cap, retrieve.filter_fields)}")
    return list(dict.fromkeys(problems))


def _unknown(where: str, told: Condition | None, texts: set[str], numbers: set[str]) -> Iterable[str]:
    """`texts` equal values, `numbers` have an order."""
    known = texts | numbers
    for one in condition.comparisons(told) if told else ():
        if one.name not in known:
            yield f"{where}: {one.name!r} is none of {', '.join(sorted(known))}{did_you_mean(one.name, known)}"
        elif not isinstance(one, OneOf) and one.name not in numbers:
            yield f"{where}: {one.name!r} has no order; compare it by ==, !=, in or not in"
        elif isinstance(one, OneOf) and one.name not in texts and any(isinstance(v, str | bool) for v in one.values):
            yield f"{where}: {one.name!r} is a number; compare it with numbers"
