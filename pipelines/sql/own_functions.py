"""SQL functions that the pipelines call themselves, beside those of pipelines/sql/functions.py, and how they call them.

The same test compares them on both engines. Aggregates are of groups of rows; no user's expression has one. The rest
users may not call, since the engines differ beyond what is called here: texts, truth values and null in `to_json`.
A percentile between two values differs in its last digit, of which a day's profile keeps none.
"""

from __future__ import annotations

AGGREGATES: dict[str, tuple[str, ...]] = {
    "count": ("count(1)", "count(t)"),
    "count_if": ("count_if(b)", "count_if(ts < tz)"),
    "count_distinct": ("count(DISTINCT t)", "count(DISTINCT l)"),
    "sum": ("sum(i)", "sum(CAST(xxhash64(t, i, s) AS DECIMAL(38,0)))", "sum(CAST(b AS FLOAT))",
            "sum(CAST(c AS BIGINT))"),
    "avg": ("avg(CAST(b AS FLOAT))", "avg(i)"),
    "min": ("min(t)", "min(ts)", "min(unix_micros(tz))"),
    "max": ("max(u)", "max(ts)", "max(i)"),
    "max_by": ("max_by(t, id)", "max_by(e, CASE WHEN e IS NOT NULL THEN "
               "CAST(unix_micros(ts) AS DECIMAL(18,0)) * 18446744073709551616BD + CAST(l AS DECIMAL(20,0)) END)"),
    "collect_list": ("transform(array_sort(collect_list(struct(coalesce(ts, TIMESTAMP '2000-01-01') AS k, "
                     "coalesce(tz, TIMESTAMP '1999-01-01') AS t))), click -> unix_micros(click.t))",),
    "percentile": ("transform(percentile(x, array(0.0D, 0.1D, 0.5D, 0.9D)), q -> CAST(q * 1000000 AS BIGINT))",
                   "percentile(CAST(i AS DOUBLE), array(0.25D, 0.75D))"),
}
OF_ROWS: dict[str, tuple[str, ...]] = {
    "row_number": ("row_number() OVER (PARTITION BY t ORDER BY id)",
                   "row_number() OVER (PARTITION BY b ORDER BY l DESC, id)",
                   "sum(i) OVER (PARTITION BY t ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"),
    "to_json": ("to_json(struct(t AS v))", "to_json(struct(b AS v))", "to_json(struct(t, u, n))",
                "to_json(struct(s AS v))"),
    "posexplode": ("posexplode(array(i, j))", "posexplode(array(l, k))"),
}
