"""A named setting of the configuration as a plan: index policy x masking x averaging rule, and how clients train."""

from __future__ import annotations

from contracts.config import Config
from federated.averaging import Rule
from federated.index_policy import POLICIES
from federated.local_training import LocalSettings
from federated.networks import FederatedNetworks
from federated.plan import Masking, Plan
from federated.row_space import RowSpace

CENTRAL_CLIP, CENTRAL_LEVELS, DEFAULT_LEVELS = 100.0, 2**31, 2**15  # one client of weight 1 has all bits to itself
HISTOGRAMS = "histograms"  # the last round, which counts scores and trains nothing (federated/score_histograms.py)
PARTS: dict[str, tuple[str, Masking, Rule]] = {
    "cpp1": ("cpp1", "per_row", "holders"),
    "cpp2": ("cpp2", "per_row", "holders"),
    "cpp3": ("cpp3", "per_row", "holders"),
    "cpp4": ("cpp4", "per_row", "holders"),
    "cpp5": ("cpp5", "union", "holders"),
    "fedsubavg": ("cpp2", "per_row", "heat"),
    "fedavg": ("all", "none", "plain"),
    "fedprox": ("all", "none", "plain"),
    "central": ("all", "none", "heat"),
}


def plan_of(name: str, config: Config, space: RowSpace, networks: FederatedNetworks) -> Plan:
    """Raises ConfigError when sums of this many clients could overflow."""
    s = config.federated
    policy, masking, rule = PARTS[name]
    if name == "central":
        s = s.model_copy(update={"clients": 1, "least_clients": 1, "largest_weight": 1, "clip": CENTRAL_CLIP})
    return Plan(
        space=space.size, private=space.private_ranges(), width=networks.width,
        dense=sum(p.numel() for p in networks.dense_parameters()), policy=POLICIES[policy], masking=masking, rule=rule,
        clip=s.clip, largest_weight=s.largest_weight, clients=s.clients, neighbours=s.neighbours,
        least_clients=s.least_clients, contributors=s.contributors,
        levels=CENTRAL_LEVELS if name == "central" else DEFAULT_LEVELS,
        noise=s.noise if masking != "none" else 0.0,
    )


def local_settings(name: str, config: Config) -> LocalSettings:
    s = config.federated
    proximal = s.proximal if name == "fedprox" else 0.0
    return LocalSettings(s.local_epochs, s.batch_size, s.learning_rate, s.decay, proximal, config.seed)
