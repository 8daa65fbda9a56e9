"""Made-up rows in the exact formats of public advertising logs; in each of them something says who clicks."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

CRITEO_COUNTS, CRITEO_CATEGORIES = 13, 26
AVAZU_HEADER = (
    "id,click,hour,C1,banner_pos,site_id,site_domain,site_category,app_id,app_domain,app_category,device_id,device_ip,"
    "device_model,device_type,device_conn_type,C14,C15,C16,C17,C18,C19,C20,C21"
)
TAOBAO_START = datetime(2017, 5, 5, 16, tzinfo=UTC)


def _clicks(random: np.random.Generator, strength: np.ndarray) -> list[int]:
    return (random.random(len(strength)) < 1 / (1 + np.exp(1.0 - strength))).astype(int).tolist()


def write_criteo(folder: Path, rows: int = 3000) -> Path:
    """No header, tabs, 32-bit hexadecimal categories, empty cells, counts down to -3."""
    random = np.random.default_rng(1)
    kinds = random.integers(0, 12, (rows, CRITEO_CATEGORIES))
    counts = random.negative_binomial(1, 0.05, (rows, CRITEO_COUNTS)) - random.integers(0, 4, (rows, CRITEO_COUNTS))
    clicked = _clicks(random, np.where(kinds[:, 3] < 5, 4.0, -2.0))
    missing = random.random((rows, CRITEO_COUNTS + CRITEO_CATEGORIES)) < 0.2
    missing[:, CRITEO_COUNTS + 3] = False
    lines = []
    for row in range(rows):
        cells = [str(count) for count in counts[row]]
        cells += [f"{(kind * 2654435761 + place * 97) % 2**32:08x}" for place, kind in enumerate(kinds[row])]
        kept = ["" if gone else cell for gone, cell in zip(missing[row], cells, strict=True)]
        lines.append("\t".join([str(clicked[row]), *kept]))
    (folder / "train.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def write_avazu(folder: Path, rows: int = 3000) -> Path:
    """Ids beyond 63 bits, hours as YYMMDDHH from 2014-10-21 00 h to 2014-10-30 23 h, in their order."""
    random = np.random.default_rng(2)
    hours = np.sort(random.integers(0, 240, rows))
    site, creative = random.integers(0, 9, rows), random.integers(0, 7, rows)
    clicked = _clicks(random, np.where((site < 3) | (creative == 1), 1.5, -1.0))
    lines = [AVAZU_HEADER]
    for row in range(rows):
        time = datetime(2014, 10, 21, tzinfo=UTC) + timedelta(hours=int(hours[row]))
        lines.append(
            f"{10**19 + row * 7919},{clicked[row]},{time:%y%m%d%H},1005,{row % 2},{site[row]:08x},{site[row] + 99:08x},"
            f"28905ebd,ecad2386,7801e8d9,07d7df22,a99f214a,{row % 800:08x},{row % 40:08x},1,{row % 3},"
            f"{15700 + creative[row]},320,50,{1700 + creative[row]},{row % 4},35,-1,{79 + row % 5}"
        )
    (folder / "train.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def write_taobao(folder: Path, rows: int = 4000, users: int = 120, ads: int = 90) -> Path:
    """Eight days of Beijing; NULL brands, empty levels, users and ads that their tables do not know."""
    random = np.random.default_rng(3)
    seconds = int(TAOBAO_START.timestamp()) + np.sort(random.integers(0, 8 * 86_400, rows))
    user, ad = random.integers(1, users + 1, rows), random.integers(1, ads + 1, rows)
    clicked = _clicks(random, np.where(ad % 6 < 2, 1.5, -1.2))
    log = ["user,time_stamp,adgroup_id,pid,nonclk,clk"]
    log += [f"{u},{s},{a},{('430548_1007', '430539_1007')[u % 2]},{1 - c},{c}"
            for u, s, a, c in zip(user, seconds, ad, clicked, strict=True)]
    (folder / "raw_sample.csv").write_text("\n".join(log) + "\n", encoding="utf-8")
    known = ["userid,cms_segid,cms_group_id,final_gender_code,age_level,pvalue_level,shopping_level,occupation,"
             "new_user_class_level "]
    levels = {u: "" if u % 2 else 1 + u % 3 for u in range(users)}
    known += [f"{u},{u % 97},{u % 13},{1 + u % 2},{u % 7},{levels[u]},{1 + u % 3},{u % 2},{u % 5 or ''}"
              for u in range(1, users - 4)]
    (folder / "user_profile.csv").write_text("\n".join(known) + "\n", encoding="utf-8")
    items = ["adgroup_id,cate_id,campaign_id,customer,brand,price"]
    items += [f"{a},{a % 6},{a % 40},{a % 30},{'NULL' if a % 4 == 0 else a % 20},{10.5 + a}" for a in range(1, ads - 2)]
    (folder / "ad_feature.csv").write_text("\n".join(items) + "\n", encoding="utf-8")
    return folder


def write_beauty(folder: Path, users: int = 60, products: int = 40, steps: int = 14) -> Path:
    """Reviews without a header. Whoever buys a product buys the next one afterwards, round and round."""
    random = np.random.default_rng(4)
    starts, begun = random.integers(0, products, users), random.integers(0, 40, users)
    lines = []
    for user in range(users):
        days = begun[user] + np.cumsum(random.integers(1, 6, steps))
        lines += [f"A{user:05d},{product(starts[user] + step)},{1 + step % 5}.0,{1_300_000_000 + 86_400 * day + user}"
                  for step, day in enumerate(days.tolist())]
    (folder / "ratings_Beauty.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def write_frappe(folder: Path, rows: int = 3000, users: int = 60, apps: int = 50) -> Path:
    """Two files as for libFM, of one space of numbers for all columns; an app is liked at some hours, by anybody."""
    random = np.random.default_rng(6)
    sizes = (users, apps, 7, 7, 2, 3, 2, 9, 80, 233)
    columns = [random.integers(0, size, rows) for size in sizes]
    used = _clicks(random, 2.5 * (columns[1] % 7 == columns[2]) - 1.2)
    places = [column + sum(sizes[:at]) for at, column in enumerate(columns)]
    lines = [" ".join([str(2 * label - 1), *(f"{place[row]}:1" for place in places)]) for row, label in enumerate(used)]
    for name, part in (("train", lines[: rows // 2]), ("test", lines[rows // 2 :])):
        (folder / f"frappe.{name}.libfm").write_text("\n".join(part) + "\n", encoding="utf-8")
    return folder


def product(number: int, products: int = 40) -> str:
    """Its key in the rows of `write_beauty`."""
    return f"B{int(number) % products:06d}"
