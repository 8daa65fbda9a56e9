"""Figures of federated runs: rounds, settings, and the summaries of `sluice federate` and of a ServerApp.

Bytes are those of one message on the wire, means over the clients of a round; seconds are the server's.
"""

from __future__ import annotations

from pydantic import Field

from contracts.summaries.summary import Record, Summary


class BothWays(Record):
    """Mean bytes of a client's message `up` to the server and `down` to the client."""

    up: float
    down: float


class RoundFigures(Record):
    """One completed round.

    `kept`: share of the clients' samples that were trained on; `loss`: their mean log loss before the step they were in
    (None with noise, which hides both). `union`: private rows in scope; `declared`: mean rows that a client trained.
    `lost`: phase -> clients that were lost in it; `abandoned`: attempts before this one, and of those that
    came so far, the clients whose uploads were there (`abandoned_uploads`); `left_out`: clients that were not asked,
    since sums with them were none (federated/rounds/suspicion.py); `waited`: slots in which too
    few clients could be reached, in this run so far. AUCs where the round was evaluated.
    """

    round: int
    clients: int
    loss: float | None = None
    kept: float | None = None
    union: int
    declared: float
    lost: dict[str, int]
    seconds_per_phase: dict[str, float]
    abandoned: int
    abandoned_uploads: tuple[int, ...] = ()
    left_out: tuple[int, ...] = ()
    bytes: dict[str, BothWays]
    waited: int
    seconds: float
    auc: float | None = None
    auc_validation: float | None = None


class LeakCurve(Record):
    """Share of the pairs (client, private row it holds) that a server proves after so many `rounds`, from `unions`
    alone, from opened `sums` alone, from `both` (federated/privacy/leak_curve.py)."""

    rounds: tuple[int, ...]
    unions: tuple[float, ...]
    sums: tuple[float, ...]
    both: tuple[float, ...]


class PersonalFigures(Record):
    """Of the clients' later `rows`, scored with the head that all trained and with each client's own; clicks that the
    scores say over those there were. None where the rows have one class."""

    rows: int
    auc_common: float | None = None
    auc: float | None = None
    predicted_over_observed_common: float | None = None
    predicted_over_observed: float | None = None


class SettingFigures(Record):
    """One setting: quality is that of `best_round`, the one with the best validation AUC, whose model is served.

    `bytes_by_formula_per_phase`: payload up and down. `epsilon` per row over any number of rounds, `epsilon_composed`
    over the `held` rows of a mean client, None where nothing bounds them; `epsilon_noise` of the opened sums.
    `single_holder_seen`: odds that a row with one holder in the smallest round is named by it alone (None without
    masks); `leak`: what the rounds of this start proved; `personal`: what heads of their own gave the clients.
    """

    auc: float | None = None
    auc_validation: float | None = None
    best_round: int
    history: tuple[RoundFigures, ...]
    bytes_per_client_round: float
    bytes_per_phase: dict[str, BothWays]
    bytes_by_formula: float
    bytes_by_formula_per_phase: dict[str, tuple[float, float]]
    epsilon: float | None = None
    epsilon_composed: float | None = None
    held: float
    epsilon_one_round: float | None = None
    epsilon_noise: float | None = None
    single_holder_seen: float | None = None
    leak: LeakCurve | None = None
    personal: PersonalFigures | None = None
    rounds: int
    seconds_per_round: float
    seconds_per_phase: dict[str, float]
    kept: float | None = None
    dropouts: dict[str, int]
    abandoned: int


class FederatedFigures(Record):
    """All settings side by side, by name; `central` sends nothing and has no bytes and no epsilon. `proven`: share of
    the pairs (client, row it holds) that the rounds proved in the end, by unions and sums together;
    `single_holder_seen` as in SettingFigures; `warnings`: what a setting hides less well than its name says, in words.
    """

    auc: dict[str, float | None]
    bytes_per_client_round: dict[str, float]
    bytes_by_formula: dict[str, float]
    epsilon: dict[str, float | None]
    epsilon_composed: dict[str, float | None]
    epsilon_noise: dict[str, float | None]
    single_holder_seen: dict[str, float | None] = Field(default_factory=dict)
    proven: dict[str, float | None] = Field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    auc_validation: dict[str, float | None]
    kept: dict[str, float | None]
    seconds_per_round: float
    dropouts: int
    served: str


class LedgerFigures(Record):
    """The most that a client has spent, over all runs that its memory knows of: `levels` at which it answered and the
    sum of their epsilons per row (None where nothing bounds it), `rows` asked about, noisy `sums` entered and their
    epsilon together (None without noise)."""

    levels: tuple[str, ...]
    epsilon_per_row: float | None = None
    rows: int
    sums: int
    epsilon_noise: float | None = None


class FederateSummary(Summary):
    """FEDERATED/summary.json of `sluice federate`; `clients` of the whole population."""

    federated: FederatedFigures
    clients: int
    settings: dict[str, SettingFigures]
    seconds: float
    ledger: LedgerFigures | None = None


class ServerAppSummary(Summary):
    """FEDERATED/runs/SETTING-flower/summary.json of one setting that a Flower ServerApp trained. The best round is that
    of the best AUC on the nodes' own later rows; AUC and predicted over observed clicks, of cohorts and of all, are of
    its model. Epsilons and `single_holder_seen` as in SettingFigures, `warnings` as in FederatedFigures; what the
    rounds proved, and of how many rows an epsilon is composed, nobody knows who does not have the clients' rows.
    """

    rounds: int
    history: tuple[RoundFigures, ...]
    bytes_per_client_round: float
    bytes_per_phase: dict[str, BothWays]
    best_round: int
    auc_validation: float | None = None
    auc_by_cohort: tuple[float | None, ...] = ()
    predicted_over_observed: float | None = None
    predicted_over_observed_by_cohort: tuple[float | None, ...] = ()
    epsilon: float | None = None
    epsilon_one_round: float | None = None
    epsilon_noise: float | None = None
    single_holder_seen: float | None = None
    warnings: tuple[str, ...] = ()
    personal: PersonalFigures | None = None
