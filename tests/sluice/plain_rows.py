"""Made-up rows in the exact formats of Adult and Bank; in each of them something says who answers yes."""

from __future__ import annotations

from pathlib import Path

import numpy as np

BANK_HEADER = (
    '"age";"job";"marital";"education";"default";"housing";"loan";"contact";"month";"day_of_week";"duration";'
    '"campaign";"pdays";"previous";"poutcome";"emp.var.rate";"cons.price.idx";"cons.conf.idx";"euribor3m";'
    '"nr.employed";"y"'
)


def adult_row(random: np.random.Generator, stop: str) -> str:
    age, rich = int(random.integers(17, 90)), random.random() < 0.3
    work = random.choice(["Private", "State-gov", "?"])
    job = "Exec-managerial" if rich and random.random() < 0.8 else "Sales"
    return (
        f"{age}, {work}, {random.integers(10_000, 900_000)}, Bachelors, 13, Never-married, {job}, Not-in-family, "
        f"White, {random.choice(['Male', 'Female'])}, {random.choice([0, 2174])}, 0, 40, United-States, "
        f"{'>50K' if rich else '<=50K'}{stop}"
    )


def write_adult(folder: Path, rows: int) -> Path:
    random = np.random.default_rng(3)
    train = [adult_row(random, "") for _ in range(rows)]
    (folder / "adult.data").write_text("\n".join([*train, train[0], train[0]]) + "\n\n")
    test = [adult_row(random, ".") for _ in range(rows // 2)]
    (folder / "adult.test").write_text("\n".join(["|1x3 Cross validator", *test]) + "\n\n")
    return folder


def write_bank(folder: Path, rows: int) -> Path:
    random = np.random.default_rng(4)
    lines = [BANK_HEADER]
    for _ in range(rows):
        yes = random.random() < 0.3
        seconds = int(random.integers(300, 2000) if yes else random.integers(5, 600))
        lines.append(
            f'{random.integers(18, 80)};"{random.choice(["admin.", "unknown"])}";"married";"basic.4y";"no";"no";"no";'
            f'"telephone";"may";"mon";{seconds};1;999;0;"nonexistent";1.1;93.994;-36.4;4.857;5191;'
            f'"{"yes" if yes else "no"}"'
        )
    (folder / "bank-additional-full.csv").write_text("\n".join(lines) + "\n")
    return folder
