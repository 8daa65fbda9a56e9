"""A named setting of the configuration as a plan: index policy x masking x averaging rule, and how clients train.

A name is one of NAMED or spells its three parts out, as `cpp2-none-plain` does: every cell of the three is a setting.
"""

from __future__ import annotations

from typing import cast

from contracts.config.config import Config
from contracts.errors import ConfigError
from federated.averaging.averaging import Rule
from federated.averaging.server_optimizer import ServerOptimizer
from federated.clients.local_training import LocalSettings
from federated.clients.networks import FederatedNetworks
from federated.clients.row_space import RowSpace
from federated.privacy.index_policy import POLICIES, IndexPolicy
from federated.protocol.plan import Masking, Plan

CENTRAL_CLIP, CENTRAL_LEVELS, DEFAULT_LEVELS = 100.0, 2**31, 2**15  # one client of weight 1 has all bits to itself
SCORES, HISTOGRAMS = "scores", "histograms"  # count and train nothing (federated/rounds/score_histograms.py)
PERSONAL = "personal"  # counts what heads of their own give the clients (federated/rounds/personal_scores.py)
COUNTING = (SCORES, HISTOGRAMS, PERSONAL)
NAMED = {
    "cpp1": "cpp1-per_row-holders",
    "cpp2": "cpp2-per_row-holders",
    "cpp3": "cpp3-per_row-holders",
    "cpp4": "cpp4-per_row-holders",
    "cpp5": "cpp5-union-holders",
    "fedsubavg": "cpp2-per_row-heat",
    "fedavg": "all-none-plain",
    "fedprox": "all-none-plain",
    "fedlaavg": "cpp5-union-latest",
    "fedlaavg_full": "all-union-latest",
    "central": "all-none-heat",
}


def parts_of(name: str) -> tuple[IndexPolicy, Masking, Rule]:
    """What a setting's name stands for."""
    policy, masking, rule = NAMED.get(name, name).split("-")
    return POLICIES[policy], cast(Masking, masking), cast(Rule, rule)


def plan_of(
    name: str, config: Config, space: RowSpace, networks: FederatedNetworks, identities: tuple[bytes, ...] = ()
) -> Plan:
    """Raises ConfigError on a setting that the configuration does not train (whoever starts a run names it, and it may
    be one without masks), when sums of this many clients could overflow, and on parts that do not fit together."""
    if name not in config.federated.settings:
        raise ConfigError(f"setting {name!r} is not among federated.settings {list(config.federated.settings)} of the "
                          "configuration that clients hold; prepare them with one that names it")
    s = config.federated.of(name)
    policy, masking, rule = parts_of(name)
    masking = masking if s.masked else "none"
    if policy.name == "scope" and not s.scope_buckets:
        raise ConfigError(f"setting {name!r} trains one bucket of rows a round; give federated.scope_buckets")
    if rule == "latest" and s.server_optimizer != "none":
        raise ConfigError(f"setting {name!r} descends along everybody's latest gradients, federated.server_optimizer "
                          f"is {s.server_optimizer!r}; give [federated.overrides.{name}] server_optimizer = \"none\"")
    if name == "central":
        s = s.model_copy(update={"clients": 1, "min_clients": 1, "max_samples": 1, "clip": CENTRAL_CLIP})
    return Plan(
        space=space.size, private=space.private_ranges(), width=networks.width,
        dense=sum(p.numel() for p in networks.dense_parameters()), policy=policy, masking=masking, rule=rule,
        clip=s.clip, max_samples=s.max_samples, clients=s.clients, neighbours=s.neighbours,
        min_clients=s.min_clients, timeout=s.timeout, expected_union=s.expected_union, contributors=s.contributors,
        levels=CENTRAL_LEVELS if name == "central" else DEFAULT_LEVELS,
        identities=identities if masking != "none" else (),
        noise=s.noise if masking != "none" else 0.0, noise_norm=s.noise_norm, buckets=max(s.scope_buckets, 1),
        overlap=s.overlap_rounds and masking != "none" and rule != "latest",
    )


def local_settings(name: str, config: Config) -> LocalSettings:
    """How clients train under a setting: its overrides; no decay under averaging "latest", no pull but in FedProx."""
    s = config.federated.of(name)
    proximal = s.proximal if name == "fedprox" else 0.0
    decay = 1.0 if parts_of(name)[2] == "latest" else s.decay  # gradients of all rounds are added up
    return LocalSettings(s.local_epochs, s.batch_size, s.learning_rate, decay, proximal, config.seed)


def server_optimizer(name: str, config: Config) -> ServerOptimizer:
    """What the server makes of averages under a setting, before its first round."""
    s = config.federated.of(name)
    return ServerOptimizer(s.server_optimizer, s.server_rate, s.server_beta1, s.server_beta2, s.server_tau)
