"""Which rows a client says it trains: all, the whole union, or answers drawn with probabilities p1 to p4.

    policy   p1=p3   p2=p4   what the server sees
    all                      every row of the model (no union is asked for)
    scope                    one public bucket of rows a round, the same for all clients (no union either)
    cpp1     1       0       the truth
    cpp2     15/16   1/16    deniable, eps_inf 2.71 per row
    cpp3     7/8     1/8     1.95
    cpp4     3/4     1/4     1.10
    cpp5     1       1       the whole union: nothing beyond the union itself
"""

from __future__ import annotations

from dataclasses import dataclass

from contracts.errors import ConfigError


@dataclass(frozen=True)
class IndexPolicy:
    """`p1`, `p2`: the permanent answer is yes for a held row, for one not held. `p3`, `p4`: the round's answer is yes
    after a permanent yes, after a permanent no."""

    name: str
    p1: float = 1.0
    p2: float = 1.0
    p3: float = 1.0
    p4: float = 1.0

    def __post_init__(self) -> None:
        wrong = [p for p in (self.p1, self.p2, self.p3, self.p4) if not 0.0 <= p <= 1.0]
        if wrong:
            raise ConfigError(f"index policy {self.name!r} has a probability of {wrong[0]}; give 0 to 1")

    @property
    def public_rows(self) -> bool:
        """What a round trains is known before it: no union, no choice."""
        return self.name in ("all", "scope")

    @property
    def whole_scope(self) -> bool:
        """Every client names the same rows, so that one contiguous vector can be masked."""
        return self.p1 == self.p2 == self.p3 == self.p4 == 1.0

    @property
    def p5(self) -> float:
        """A held row is sent."""
        return self.p1 * (self.p3 - self.p4) + self.p4

    @property
    def p6(self) -> float:
        """A row not held is sent."""
        return self.p2 * (self.p3 - self.p4) + self.p4


def level(name: str, high: float, low: float) -> IndexPolicy:
    """The same probabilities for the permanent and for the round's answer."""
    return IndexPolicy(name, high, low, high, low)


POLICIES = {
    policy.name: policy
    for policy in (
        IndexPolicy("all"), IndexPolicy("scope"),
        level("cpp1", 1, 0), level("cpp2", 15 / 16, 1 / 16), level("cpp3", 7 / 8, 1 / 8),
        level("cpp4", 3 / 4, 1 / 4), level("cpp5", 1, 1),
    )
}
