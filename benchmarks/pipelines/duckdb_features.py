"""The features of examples/marketplace.toml as a script for DuckDB: what somebody writes who needs this one log alone.

    run(plan)       plan: a JSON file, written by `plan_of` of benchmarks/pipelines/feature_peers.py

The same tables by the same definitions (docs/concepts/two_clocks.md), in SQL of its own: events with labels, counters
and sequences as of the last daily publish, vocabularies and bins of the training window, encoded examples, online
tables. It leaves out row hashes, quarantine, parity rows, unchanged days, and whatever else makes it more than
a script. Days are whole numbers since 1970; windows are those of benchmarks/pipelines/duckdb_counts.py.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.pipelines.duckdb_counts import DAY, counts_as_of, counts_by_day, rates

SAMPLE = 200_000


def run(plan: str) -> None:
    """Does it all; `plan` is a path."""
    import duckdb

    wanted = json.loads(Path(plan).read_text(encoding="utf-8"))
    base = duckdb.connect(config={"threads": wanted["threads"], "memory_limit": wanted["memory"],
                                  "temp_directory": wanted["temporary"], "preserve_insertion_order": False})
    script = Script(base, wanted)
    for part in (script.ingest, script.count, script.remember, script.join, script.fit, script.encode, script.publish):
        part()


class Script:
    """One connection and the plan; each method is a part of the work."""

    def __init__(self, base: Any, plan: Mapping[str, Any]) -> None:
        self.base, self.plan, self.out = base, plan, Path(plan["out"])
        self.windows: dict[str, int] = plan["counter_days"]  # name -> days
        self.spans: dict[str, list[int]] = plan["spans"]  # window -> [start, end) in microseconds
        self.edges: dict[tuple[str, int], list[float]] = {}

    def sql(self, text: str) -> list[tuple[Any, ...]]:
        return self.base.execute(text).fetchall()

    def table(self, name: str, query: str) -> None:
        self.base.execute(f"create or replace temp table {name} as {query}")

    def write(self, query: str, *folder: str, by_day: bool = False) -> None:
        target = self.out.joinpath(*folder)
        target.parent.mkdir(parents=True, exist_ok=True)
        partition = ", partition_by (day)" if by_day else ""
        self.base.execute(f"copy ({query}) to '{target}{'' if by_day else '.parquet'}' (format parquet{partition})")

    def ingest(self) -> None:
        """Events once each, with label, label time and the moments at which they count."""
        raw, window = self.plan["raw"], self.plan["label_window"]
        for view in ("impressions", "clicks"):  # plain timestamps, which need no extension for time zones
            self.base.execute(f"""create view {view} as select * replace (
                make_timestamp(epoch_us(event_time)) as event_time, make_timestamp(epoch_us(known_time)) as known_time)
                from '{raw}/{view}/*.parquet'""")
        self.table("twice", """select request_id, item_id, event_time::date d, min(known_time) first
            from impressions group by all having count(*) > 1""")
        self.table("shown", """select log.* from impressions log left join twice
            on log.request_id = twice.request_id and log.item_id = twice.item_id and log.event_time::date = twice.d
            where first is null or known_time = first""")
        self.table("answered", f"""select s.request_id, s.item_id, s.event_time, min(c.known_time) click_known
            from shown s join clicks c on c.request_id = s.request_id and c.item_id = s.item_id
              and c.event_time between s.event_time and s.event_time + to_microseconds({window})
            group by all""")
        self.table("click_times", "select request_id, item_id, min(event_time) click_at from clicks group by all")
        self.table("events", f"""
            with labelled as (
              select s.*, epoch_us(s.event_time) shown_at, epoch_us(s.known_time) known,
                click_known is not null clicked,
                greatest(coalesce(epoch_us(click_known), epoch_us(s.event_time) + {window}),
                         epoch_us(s.known_time)) decided
              from shown s left join answered using (request_id, item_id, event_time)),
            timed as (select *, greatest(shown_at + 1, known) enter from labelled)
            select t.*, hash(t.request_id, t.item_id, shown_at // {DAY}) row_id,
              greatest(enter, shown_at + {window}) closes,
              if(clicked, greatest(enter, decided), null) learned, epoch_us(click_at) click_at,
              if(clicked, greatest(enter, decided, shown_at + {window}), null) counts, shown_at // {DAY} p,
              hour(t.event_time) as hour, isodow(t.event_time) - 1 as weekday, i.category, i.advertiser_id
            from timed t left join click_times using (request_id, item_id)
              left join '{raw}/items/*.parquet' i on i.item_id = t.item_id""")
        self.write("""select row_id, user_id, item_id, request_id, event_time, known_time, clicked::float label,
            make_timestamp(decided) label_time, position, bid, device, placement, hour, weekday, event_time::date as day
            from events""", "events", by_day=True)
        for side in ("users", "items"):
            self.table(side, f"select * from '{raw}/{side}/*.parquet'")

    def count(self) -> None:
        """For every counter, the smoothed counts of every key and day on which it is asked for."""
        start, end = self.spans["statistics"]
        self.prior = self.sql(f"""select count(*) filter (counts <= {end}) / count(*) from events
            where shown_at >= {start} and shown_at < {end} and closes <= {end}""")[0][0]
        for counter, key in self.plan["counters"].items():
            self.table(f"by_{counter}", f"""
                with running as ({counts_by_day(self.windows, key)}),
                asked as (select distinct {key} as key, p from events where {key} is not null)
                select asked.key, asked.p, {self._rates(counter, 'running')} from asked asof left join running
                  on asked.key = running.key and asked.p >= running.day""")

    def _rates(self, counter: str, of: str) -> str:
        return rates(self.windows, counter, of, self.prior, self.plan["prior_strength"])

    def remember(self) -> None:
        """Of every user and day, the items clicked last, newest first, of those learned by then."""
        length = self.plan["sequence_length"]
        self.table("clicks_of", f"""select user_id, list({{'item': item_id, 'v': (learned + {DAY - 1}) // {DAY}}}
            order by click_at desc, learned desc, row_id) clicks
            from events where learned is not null and user_id is not null group by user_id""")
        self.table("recent", f"""select a.user_id, p,
            list_transform(list_filter(clicks, lambda c: c.v <= p)[1:{length}], lambda c: c.item) recent_clicks
            from (select distinct user_id, p from events) a join clicks_of using (user_id)""")

    def join(self) -> None:
        """Every event with its counters, and the window it belongs to; written with all attributes."""
        last = self.sql(f"select max(shown_at) + 1 - {self.plan['label_window']} from events")[0][0]
        embargo = self.plan["label_window"]
        ends = {w: min(b, last) if w == "test" else b - embargo for w, (_, b) in self.spans.items()}
        cases = " ".join(f"when shown_at >= {a} and shown_at < {ends[w]} then '{w}'"
                         for w, (a, _) in self.spans.items())
        counters = ", ".join(f"c{k}.* exclude (key, p)" for k in range(len(self.plan["counters"])))
        joins = " ".join(f"left join by_{name} c{k} on c{k}.key = e.{key} and c{k}.p = e.p"
                         for k, (name, key) in enumerate(self.plan["counters"].items()))
        self.table("rows", f"select e.*, {counters}, case {cases} end as window_name from events e {joins}")
        wide = f"select {self._wide()}, event_time::date as day from {self._attributes('rows')}"
        self.write(wide, "features", by_day=True)

    def _wide(self) -> str:
        plan = self.plan
        names = ["row_id", "user_id", "item_id", "request_id", "event_time", "known_time", "clicked", "position", "bid"]
        own = ", ".join(f"r.{name}" for name in (*names, *plan["context"], *self._counted()))
        users = ", ".join(f"u.{name}" for name in (*plan["users"], *plan["user_numbers"]) if name != "user_id")
        items = ", ".join(f"i.{name}" for name in (*plan["items"], *plan["item_numbers"]) if name != "item_id")
        return f"{own}, {users}, {items}, i.tags, coalesce(s.recent_clicks, []) recent_clicks"

    def _attributes(self, rows: str) -> str:
        return (f"{rows} r left join users u on u.user_id = r.user_id left join items i on i.item_id = r.item_id "
                "left join recent s on s.user_id = r.user_id and s.p = r.p")

    def _counted(self) -> list[str]:
        return [f"{counter}_{statistic}_{w}" for counter in self.plan["counters"] for w in self.windows
                for statistic in ("count", "rate")]

    def fit(self) -> None:
        """Vocabularies, moments and quantiles of what the training window knew when it ended."""
        end = self.spans["train"][1]
        self.table("train", f"""select {self._wide()} from {self._attributes('rows')}
            where window_name = 'train' and known <= {end}""")
        sizes = {}
        for name, least in {**self.plan["users"], **self.plan["items"], **self.plan["context"]}.items():
            sizes[name] = self._vocabulary(name, f"select {name} key from train", least)
        tags = f"tags[1:{self.plan['tags_length']}]"
        sizes["tags"] = self._vocabulary("tags", f"select unnest(list_distinct({tags})) key from train", 2)
        spec = {name: self._moments(name, logged) for name, logged in self._numbers().items()}
        self._side_ids(tags)
        left, right = self.plan["cross"]
        self.cross = f"coalesce(users_ids.{left}, 1)::bigint * {sizes[right] + 2} + coalesce(items_ids.{right}, 1)"
        self._vocabulary("cross", f"""select {self.cross} key from train left join users_ids using (user_id)
            left join items_ids using (item_id)""", 2)
        (self.out / "spec.json").write_text(json.dumps({"prior": self.prior, "sizes": sizes, "numbers": spec}), "utf-8")

    def _vocabulary(self, name: str, keys: str, least: int) -> int:
        self.table(f"ids_{name}", f"""select key, (row_number() over (order by key) + 1)::int id
            from (select key from ({keys}) where key is not null group by key having count(*) >= {least})""")
        self.write(f"select * from ids_{name} order by id", "vocabularies", name)
        return int(self.sql(f"select count(*) from ids_{name}")[0][0])

    def _numbers(self) -> dict[str, bool]:
        """Name -> whether it is scaled as ln(1 + x)."""
        counted = {name: "_count_" in name for name in self._counted()}
        return {**self.plan["user_numbers"], **self.plan["item_numbers"], **counted}

    def _moments(self, name: str, logged: bool) -> dict[str, Any]:
        grains = self.plan["grains"].get(name, [10])
        scaled = f"ln(1 + greatest({name}, 0))" if logged else name
        cuts = {g: [k / g for k in range(1, g)] for g in grains}
        lists = ", ".join(f"quantile_disc({name}, {cut})" for cut in cuts.values())
        found = self.sql(f"""select avg({scaled}), stddev_pop({scaled}), median({name}), min({name}), {lists}
            from (select {name} from train order by hash(row_id) limit {SAMPLE}) where isfinite({name})""")[0]
        for grain, quantiles in zip(cuts, found[4:], strict=True):
            self.edges[name, grain] = sorted({edge for edge in quantiles if edge > found[3]})
        return {"mean": found[0], "std": found[1], "default": found[2]}

    def _side_ids(self, tags: str) -> None:
        """Users and items with their ids in place of values."""
        for side in ("users", "items"):
            names = list(self.plan[side])
            key = "user_id" if side == "users" else "item_id"
            ids = ", ".join(f"coalesce(v_{name}.id, 1) {self._id(name)}" for name in names)
            joins = " ".join(f"left join ids_{name} v_{name} on v_{name}.key = t.{name}" for name in names)
            self.table(f"{side}_ids", f"select t.{key}, {ids} from {side} t {joins}")
        length = self.plan["tags_length"]
        self.table("tags_of", f"""select item_id, list_resize(list(coalesce(id, 1) order by place), {length}, 0) tags
            from (select item_id, unnest({tags}) tag, generate_subscripts({tags}, 1) place from items)
            left join ids_tags on key = tag group by item_id""")

    def encode(self) -> None:
        """Examples: ids, bins and numbers, a folder a window, sorted by row."""
        length = self.plan["sequence_length"]
        self.table("recent_ids", f"""
            with clicked as (select user_id, p, unnest(recent_clicks) item, generate_subscripts(recent_clicks, 1) place
                             from recent)
            select user_id, p, list_resize(list(coalesce(id, 1) order by place), {length}, 0) ids
            from clicked left join ids_item_id on key = item group by user_id, p""")
        user_names = ", ".join(f"coalesce(users_ids.{self._id(n)}, 1) as {n}" for n in self.plan["users"])
        item_names = ", ".join(f"coalesce(items_ids.{self._id(n)}, 1) as {n}" for n in self.plan["items"])
        context = ", ".join(f"coalesce(x_{n}.id, 1) as {n}" for n in self.plan["context"])
        joins = " ".join(f"left join ids_{n} x_{n} on x_{n}.key = r.{n}" for n in self.plan["context"])
        numbers = {n: f"u.{n}" for n in self.plan["user_numbers"]} | {n: f"i.{n}" for n in self.plan["item_numbers"]}
        bins = ", ".join(f"{_bin(numbers.get(n, 'r.' + n), edges)} as \"{n}#{g}\""
                         for (n, g), edges in self.edges.items())
        dense = ", ".join(f"{numbers.get(name, 'r.' + name)} as {name}" for name in self._numbers())
        end = self.spans["train"][1]
        for window in ("train", "validation", "test"):
            known = f"known <= {end}" if window == "train" else "true"
            label = f"(clicked and decided <= {end})" if window == "train" else "clicked"
            self.write(f"""select {label}::float label, position, row_id, hash(r.user_id) user_hash, {user_names},
                {item_names}, {context}, {bins}, {dense}, coalesce(tags_of.tags, [0, 0, 0, 0]) tags,
                coalesce(ids, list_resize([]::int[], {length}, 0)) recent_clicks,
                coalesce(crossed.id, 1) crossed, event_time::date as day
                from rows r left join users u on u.user_id = r.user_id left join items i on i.item_id = r.item_id
                left join users_ids on users_ids.user_id = r.user_id
                left join items_ids on items_ids.item_id = r.item_id
                left join tags_of on tags_of.item_id = r.item_id {joins}
                left join recent_ids q on q.user_id = r.user_id and q.p = r.p
                left join ids_cross crossed on crossed.key = {self.cross}
                where window_name = '{window}' and {known} order by row_id""", "examples", window, by_day=True)

    def _id(self, name: str) -> str:
        return f"id_{name}" if name in ("user_id", "item_id") else name

    def publish(self) -> None:
        """Users and items as of the first midnight after the last event."""
        p = self.sql("select max(p) + 1 from events")[0][0]
        length = self.plan["sequence_length"]
        known = f"list_filter(coalesce(clicks, []), lambda c: c.v <= {p})"
        self.write(f"""select k.user_id, u.* exclude (user_id), {self._rates('user_activity', 'n')},
            list_transform({known}[1:{length}], lambda c: c.item) recent_clicks,
            list_transform({known}[1:50], lambda c: c.item) recent_items
            from (select user_id from users union select user_id from events) k left join users u using (user_id)
            left join ({counts_as_of(self.windows, 'user_id', p)}) n on n.key = k.user_id
            left join clicks_of using (user_id)""",
                   "online", "users")
        sides = {"item_clicks": "k.item_id", "category_clicks": "i.category", "advertiser_clicks": "i.advertiser_id"}
        joins = " ".join(f"left join ({counts_as_of(self.windows, key.split('.')[1], p)}) n_{name} "
                         f"on n_{name}.key = {key}" for name, key in sides.items())
        counted = ", ".join(self._rates(name, f"n_{name}") for name in sides)
        self.write(f"""select k.item_id, i.* exclude (item_id), b.* exclude (item_id), {counted}
            from (select item_id from items union select item_id from events) k
            left join items i on i.item_id = k.item_id
            left join (select item_id, arg_max(bid, shown_at) last_bid, count(*) filter (closes <= {p * DAY}) shown,
                         count(*) filter (counts <= {p * DAY}) clicks from events group by item_id) b
              on b.item_id = k.item_id {joins}""",
                   "online", "items")


def _bin(column: str, edges: Sequence[float]) -> str:
    """1 for a missing value, else 2 + the edges at or below it, by a tree of comparisons."""
    def tree(low: int, high: int) -> str:
        if low == high:
            return str(low + 2)
        middle = (low + high) // 2
        return (f"case when {column} >= {edges[middle]!r}::double then {tree(middle + 1, high)} "
                f"else {tree(low, middle)} end")
    return f"(case when {column} is null or isnan({column}) then 1 else {tree(0, len(edges))} end)"
