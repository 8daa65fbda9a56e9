"""A finished setting in figures: quality of the served round, bytes, what answers give away, seconds, losses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from contracts.config.config import Config
from contracts.summaries.federated import (
    FederatedFigures,
    LeakCurve,
    LedgerFigures,
    PersonalFigures,
    RoundFigures,
    SettingFigures,
)
from federated.clients import client_files
from federated.clients.row_space import RowSpace
from federated.privacy import privacy_cost, skellam
from federated.privacy.epsilon_ledger import EpsilonLedger
from federated.protocol.messages import PHASES
from federated.protocol.plan import TAIL
from federated.rounds.byte_count import both_ways, mean_of_rounds, predicted
from federated.rounds.settings import parts_of
from federated.rounds.training import UP_TO_UPLOAD, FederatedRun
from federated.secure_aggregation.neighbour_graph import degree


def figures_of(
    training: FederatedRun, config: Config, folder: Path, leak: LeakCurve | None = None,
    personal: PersonalFigures | None = None,
) -> SettingFigures:
    """Quality is that of the round with the best validation AUC, whose model is served; `leak`: what its rounds proved;
    `personal`: what heads of their own gave the clients."""
    history, best = training.history, training.best()
    _, spec = client_files.read_public(folder)
    held = rows_held(RowSpace(spec, config.federated.public_up_to), folder)
    spent = privacy_of(training, config.federated.delta)
    sent = mean_of_rounds([entry.bytes for entry in history])
    formula = bytes_by_formula(training) if sent else {}
    dropouts: Counter[str] = Counter()
    for entry in history:
        dropouts.update(entry.lost)
    return SettingFigures(
        auc=best.auc, auc_validation=best.auc_validation, best_round=best.round, history=tuple(history),
        bytes_per_client_round=both_ways(sent), bytes_per_phase=sent,
        bytes_by_formula=sum(map(sum, formula.values())), bytes_by_formula_per_phase=formula,
        epsilon=spent.epsilon, epsilon_composed=None if spent.epsilon is None else spent.epsilon * held, held=held,
        epsilon_one_round=spent.epsilon_one_round, epsilon_noise=spent.epsilon_noise, leak=leak, personal=personal,
        single_holder_seen=spent.single_holder_seen,
        rounds=len(history), seconds_per_round=_mean(entry.seconds for entry in history),
        seconds_per_phase={phase: _mean(entry.seconds_per_phase[phase] for entry in history) for phase in PHASES},
        kept=_mean_of_known(entry.kept for entry in history), dropouts=dict(dropouts),
        abandoned=sum(entry.abandoned for entry in history),
    )


@dataclass(frozen=True, kw_only=True)
class Privacy:
    """What the rounds of a run say of a client, as SettingFigures and ServerAppSummary have it."""

    epsilon: float | None
    epsilon_one_round: float | None
    epsilon_noise: float | None
    single_holder_seen: float | None


def privacy_of(training: FederatedRun, delta: float) -> Privacy:
    """From the policy and the rounds alone, which a server knows."""
    policy, masked = training.plan.policy, training.plan.masked
    return Privacy(
        epsilon=_finite(privacy_cost.any_rounds(policy)) if masked else None,
        epsilon_one_round=_finite(privacy_cost.one_round(policy)) if masked else None,
        epsilon_noise=noise_epsilon(training, delta), single_holder_seen=single_holder_seen(training))


def warnings_of(name: str, seen: float | None, smallest: int) -> tuple[str, ...]:
    """What to say where rows of one holder are opened too often: `seen` of them in the `smallest` round of clients."""
    if seen is None or seen < privacy_cost.RARELY:
        return ()
    policy, _, _ = parts_of(name)
    fewest = privacy_cost.clients_that_hide(policy)
    cure = (f"with {fewest} clients in its smallest round it is below {privacy_cost.RARELY:.0%}: raise "
            "federated.clients" if fewest else "no number of clients hides it")
    return (f"{name}: in its smallest round, of {smallest} clients, a row that one of them holds is named by that one "
            f"alone with odds of {seen:.1%}, and its update of that row is then opened by name; {cure}, or take cpp5",)


def side_by_side(config: Config, settings: dict[str, SettingFigures]) -> FederatedFigures:
    """Every setting's figures by name; `central` is no federated run and has neither bytes nor epsilon."""
    secure = {name: figures for name, figures in settings.items() if name != "central"}
    return FederatedFigures(
        auc={name: figures.auc for name, figures in settings.items()},
        bytes_per_client_round={name: figures.bytes_per_client_round for name, figures in secure.items()},
        bytes_by_formula={name: figures.bytes_by_formula for name, figures in secure.items()},
        epsilon={name: figures.epsilon for name, figures in secure.items()},
        epsilon_composed={name: figures.epsilon_composed for name, figures in secure.items()},
        epsilon_noise={name: figures.epsilon_noise for name, figures in secure.items()},
        single_holder_seen={name: figures.single_holder_seen for name, figures in secure.items()},
        proven={name: figures.leak.both[-1] if figures.leak and figures.leak.both else None
                for name, figures in secure.items()},
        warnings=tuple(words for name, figures in secure.items() for words in warnings_of(
            name, figures.single_holder_seen, min(entry.clients for entry in figures.history))),
        auc_validation={name: figures.auc_validation for name, figures in settings.items()},
        kept={name: figures.kept for name, figures in settings.items()},
        seconds_per_round=settings[config.federated.served].seconds_per_round,
        dropouts=sum(sum(figures.dropouts.values()) for figures in secure.values()), served=config.federated.served,
    )


def round_line(entry: RoundFigures) -> str:
    """A round in a line: what is known of loss and AUC, and who was left out."""
    known = {"loss": entry.loss, "auc": entry.auc_validation}
    left_out = f", left out since sums with them were none: {list(entry.left_out)}" if entry.left_out else ""
    return f"round {entry.round}" + "".join(
        f", {name} {value:.4f}" for name, value in known.items() if value is not None) + left_out


def bytes_by_formula(training: FederatedRun) -> dict[str, tuple[float, float]]:
    """Payload (up, down) of a client in each phase at the mean of the rounds' unions and rows, with nobody lost."""
    plan, history = training.plan, training.history
    clients = round(_mean(entry.clients + sum(entry.lost.get(phase, 0) for phase in UP_TO_UPLOAD) for entry in history))
    return predicted(
        code=plan.code.size if plan.contributors <= 1 else len(plan.private_places), private=len(plan.private_places),
        union=int(_mean(entry.union for entry in history)), rows=_mean(entry.declared for entry in history),
        dense=plan.dense, width=plan.width, neighbours=degree(clients, plan.neighbours), clients=clients,
        per_row=plan.masking == "per_row", masked=plan.masked, choose=not plan.policy.public_rows,
    )


def single_holder_seen(training: FederatedRun) -> float | None:
    """That a row with one holder in the smallest round is named by that one alone, whose update is then opened by name;
    None without masks, which show all of them."""
    if not training.plan.masked:
        return None
    others = min(entry.clients for entry in training.history) - 1
    return privacy_cost.single_holder_seen(training.plan.policy, 1, others)


def noise_epsilon(training: FederatedRun, delta: float) -> float | None:
    """Of all sums of updates together that were opened or could have been, those of abandoned attempts among them, for
    a client that took part in each; None without noise. The fewest uploads of a sum bound its noise, less one: a client
    knows its own."""
    plan = training.plan
    if not plan.noise:
        return None
    abandoned = [uploads for entry in training.history for uploads in entry.abandoned_uploads
                 if uploads >= plan.min_clients]
    fewest = min([*abandoned, *(entry.clients for entry in training.history)]) - 1
    words = plan.dense + TAIL + plan.space * (plan.width + 1)
    l2, l1 = skellam.sensitivities(plan.noise_norm, words)
    return skellam.epsilon(fewest * plan.noise, l2, l1, len(training.history) + len(abandoned), delta)


def ledger_figures(folder: Path, delta: float) -> LedgerFigures:
    """The largest of what the clients have spent, over all runs that their memories know of."""
    spent = [EpsilonLedger(client_files.memory(folder, number) / "answers" / "ledger.json").read()
             for number in range(client_files.count(folder))]
    per_row = [each.epsilon_per_row for each in spent]
    known = [epsilon for epsilon in per_row if epsilon is not None]
    noise = [epsilon for each in spent if (epsilon := each.epsilon_noise(delta)) is not None]
    return LedgerFigures(
        levels=tuple(sorted({level for each in spent for level in each.levels})),
        epsilon_per_row=max(known, default=0.0) if len(known) == len(spent) else None,
        rows=max((each.rows for each in spent), default=0), sums=max((each.sums for each in spent), default=0),
        epsilon_noise=max(noise, default=None),
    )


def rows_held(space: RowSpace, folder: Path) -> float:
    """Mean number of private rows that a client's samples use: what epsilon per row composes over."""
    batches = (client_files.read_client(folder, number) for number in range(client_files.count(folder)))
    return _mean(len(space.held(batch)) for batch in batches)


def _mean(values: Iterable[float]) -> float:
    return float(np.mean(list(values)))


def _mean_of_known(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return _mean(known) if known else None


def _finite(epsilon: float) -> float | None:
    """None where nothing bounds it: JSON has no infinity."""
    return epsilon if np.isfinite(epsilon) else None
