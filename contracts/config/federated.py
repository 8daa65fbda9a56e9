"""Rounds in which users are clients."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from contracts.config.section import ModelName, Section, Share

FEDERATED_SETTINGS = (
    "cpp1", "cpp2", "cpp3", "cpp4", "cpp5", "fedsubavg", "fedavg", "fedprox", "fedlaavg", "fedlaavg_full", "central",
)
INDEX_POLICIES = ("all", "scope", "cpp1", "cpp2", "cpp3", "cpp4", "cpp5")
MASKINGS = ("none", "union", "per_row")
AVERAGING_RULES = ("holders", "heat", "plain", "latest")


class FederatedOverrides(Section):
    """What one setting trains with in place of the values of `[federated]`; each setting has a best of its own."""

    rounds: int | None = Field(None, ge=1)
    local_epochs: int | None = Field(None, ge=1)
    batch_size: int | None = Field(None, ge=1)
    learning_rate: float | None = Field(None, gt=0)
    clip: float | None = Field(None, gt=0)
    server_optimizer: Literal["none", "momentum", "adam"] | None = None
    server_rate: float | None = Field(None, gt=0)


class Federated(Section):
    """Rounds in which the users of the log are clients. See federated/ for what each setting means.

    setting                    rows a client names        masks     averaging
    cpp1 cpp2 cpp3 cpp4        randomised answers         per row   holders
    cpp5                       the round's union          union     holders
    fedsubavg                  randomised (level cpp2)    per row   heat
    fedavg fedprox             all rows                   none      plain
    fedlaavg                   the round's union          union     latest
    fedlaavg_full              all rows                   union     latest
    central                    one client with all data
    P-M-A                      any policy, masks and averaging, as in cpp2-none-plain

    P: all, scope (public buckets), cpp1 to cpp5. M: none, union, per_row. A: holders, heat, plain, latest.
    """

    fields: tuple[str, ...] = Field((), description="the fields used; empty: all of the configuration")
    settings: tuple[str, ...] = Field(("cpp2",), description="each trains a model of its own")
    served: str = Field("cpp2", description="the one that becomes the bundle; must be among `settings`")
    model: ModelName = Field("din", description="any that learns: popularity does not")
    retrieval: bool = Field(
        True, description="the rounds train towers and pre-ranker too; without, there are figures and no bundle"
    )
    rounds: int = Field(50, ge=1, description="of each setting")
    population: int = Field(0, ge=0, description="most users that become clients; 0: all")
    clients: int = Field(
        48, ge=3, description="of one round; a cohort has at least so many, and fewer than twice as many"
    )
    cohorts: bool = Field(
        True, description="clients come in groups that stay the same, else each round draws them anew: differences "
                          "between rounds then tell more of each; not under averaging 'latest'"
    )
    availability: Literal["always", "alternating", "day_cycle", "random", "trace"] = Field(
        "always", description="who can be reached in a round"
    )
    availability_period: int = Field(20, ge=2, description="rounds of one alternation or day")
    availability_share: Share = Field(0.5, description="of the day, or the probability, that a client is there")
    availability_trace: str = Field("", description="the file of a trace: a line a round, client numbers on it")
    availability_by: str = Field("", description="a field whose equal values come together; empty: drawn per client")
    local_epochs: int = Field(1, ge=1, description="that a client trains in a round")
    batch_size: int = Field(8, ge=1, description="samples of a local step")
    learning_rate: float = Field(0.3, gt=0, description="of local gradient descent")
    decay: float = Field(0.999, gt=0, le=1, description="of the learning rate, each round")
    proximal: float = Field(0.01, ge=0, description="FedProx: weight of the distance to the round's model")
    prior: float = Field(0.5, gt=0, lt=1, description="public guess at the label rate, where the model starts")
    clip: float = Field(2.0, gt=0, description="largest entry of a client's update")
    max_samples: int = Field(
        1000, ge=1, description="most samples of a client, and most later rows that it counts; it uses no more"
    )
    largest_heat: float = Field(50.0, gt=0, description="clip of N / n_j in FedSubAvg")
    server_optimizer: Literal["none", "momentum", "adam"] = Field(
        "none", description="what the server makes of a round's average: FedAvgM's momentum or FedAdam"
    )
    server_rate: float = Field(1.0, gt=0, description="of the server's optimiser")
    server_beta1: float = Field(0.9, ge=0, lt=1, description="its momentum")
    server_beta2: float = Field(0.99, ge=0, lt=1, description="adam: memory of the squares")
    server_tau: float = Field(1e-3, gt=0, description="adam: what is added to their root")
    personal_steps: int = Field(
        0, ge=0, description="once the rounds are done, each client fits the ranker's last layer to its own rows in so "
                             "many steps of descent, and keeps it; 0: all have the common one"
    )
    personal_rate: float = Field(0.1, gt=0, description="of that descent")
    personal_pull: float = Field(
        1.0, ge=0, description="holds a personal last layer near the common one: the precision of a prior, against "
                               "which each of the client's rows counts once"
    )
    masked: bool = Field(
        True, description="false: every setting without masks, so the server sees each update; for experiments, since "
                          "the sums and so the model are the same, sooner"
    )
    neighbours: int = Field(40, ge=2, description="clients that each masks with")
    min_clients: int = Field(3, ge=3, description="a smaller round is refused by every client")
    public_up_to: int = Field(64, ge=0, description="tables of up to so many ids belong to every submodel")
    expected_union: int = Field(
        0, ge=0, description="most rows of a round's union, roughly: where a Bloom filter of so many is smaller than a "
                             "word per row, membership travels in one; 0: a word per row"
    )
    contributors: int = Field(1, ge=1, description="rows held by fewer clients of a round stay out of its union")
    scope_buckets: int = Field(0, ge=0, description="policy scope: public buckets of rows, one is trained a round")
    noise: float = Field(0.0, ge=0, description="variance, in steps, of each client's Skellam noise; 0: none")
    noise_norm: float = Field(
        0.0, ge=0, description="with noise: largest L2 norm, in steps, of what a client sends; longer is scaled down"
    )
    delta: float = Field(1e-5, gt=0, lt=1, description="of the noise's epsilon")
    dropout_rate: float = Field(0.0, ge=0, lt=1, description="simulated share of clients lost in a round, at any phase")
    evaluate_every: int = Field(10, ge=1, description="rounds between two evaluations; central: 1")
    timeout: float = Field(600.0, gt=0, description="seconds that a phase waits for answers")
    enough: float = Field(
        0.8, gt=0, le=1, description="share of the nodes asked: once so many have answered, a phase of a deployment "
                                     "waits as long again, at least 5 seconds, and closes"
    )
    overlap_rounds: bool = Field(
        True, description="in a deployment with masks: a round is prepared (keys, shares, union) while the one before "
                          "trains and is opened, and clients remember both; never with averaging latest"
    )
    overrides: dict[str, FederatedOverrides] = Field(
        {}, description="setting -> values of its own, as in [federated.overrides.fedavg]"
    )

    def of(self, setting: str) -> Federated:
        """With the setting's own values."""
        overrides = self.overrides.get(setting, FederatedOverrides())
        return self.model_copy(update=overrides.model_dump(exclude_none=True))

    @field_validator("settings", "overrides")
    @classmethod
    def _settings_are_known(cls, named: Any) -> Any:
        for name in named:
            parts = name.split("-")
            known = len(parts) == 3 and all(
                part in among
                for part, among in zip(parts, (INDEX_POLICIES, MASKINGS, AVERAGING_RULES), strict=True)
            )
            if name not in FEDERATED_SETTINGS and not known:
                raise ValueError(
                    f"{name!r} is no setting; take {', '.join(FEDERATED_SETTINGS)}, or POLICY-MASKS-AVERAGING of "
                    f"{', '.join(INDEX_POLICIES)}; {', '.join(MASKINGS)}; {', '.join(AVERAGING_RULES)}"
                )
        return named

    @model_validator(mode="after")
    def _parts_fit_together(self) -> Federated:
        if self.served not in self.settings:
            raise ValueError(f"served is {self.served!r}, which is not among settings {list(self.settings)}; add it")
        if (self.availability == "trace") != bool(self.availability_trace):
            raise ValueError("availability = 'trace' and availability_trace, its file, go together; give both or "
                             "neither")
        for name in ("min_clients", "contributors"):
            if getattr(self, name) > self.clients:
                raise ValueError(f"{name} is {getattr(self, name)}, a round has {self.clients} clients; lower it, or "
                                 "raise clients")
        if self.noise and not self.noise_norm:
            raise ValueError("noise without noise_norm bounds nothing; give noise_norm, the largest L2 norm in steps")
        return self
