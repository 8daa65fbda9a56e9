"""What HAProxy (https://www.haproxy.org, 2.4 or newer) is told: one port before the workers' own, and whom it refuses.

    ahead      calls of the Ranking service that workers have under way x mean seconds of one, over them (`pace`)
    refused    who would wait longer than half of its time (`deadline`, where it has none of its own), or than LONGEST;
               not while its tenant has fewer of the calls under way than tenants that have called lately would have
               evenly, unless it would wait twice as long
    else       to the connection with the fewest calls under way

So a refusal costs some microseconds of a program in C, where Python takes a fifth of a millisecond of the core that
answers need. What is let in meets the workers' own queue, which knows deadlines, turns and shares exactly
(serving/admission/admission.py). A call that no worker has begun to answer when its connection broke is sent again.

Counted are calls by worker: those of the whole backend would be all that callers have not taken the answers of, so that
one that takes none would have everybody refused. For the same reason a call is no worker's before its request is here,
up to a buffer's size. A message of 64 KiB or more is left to the workers to refuse: HAProxy breaks off what it answers
before it has read it all, and who has not yet sent it all hears CANCELLED. Where callers have tokens, tenants are those
that workers have answered otherwise than UNAUTHENTICATED: invented tokens would make every share as small as they like.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import starmap
from string import Template

from serving.access.doors import address
from serving.access.tls import TlsFiles
from serving.balancer.certificates import bound
from serving.proto import sluice_pb2 as pb

RANKING = pb.DESCRIPTOR.services_by_name["Ranking"].full_name
LONGEST = 0.2  # seconds that a call may wait, however much time it has
PATIENCE = "10s"  # with a caller that neither sends what it has begun nor takes its answer
CONNECTIONS = 4  # to each worker, so that calls are spread finely
WORKERS_OF_A_THREAD = 16  # a call takes a hundredth of what it takes a worker
UNKNOWN_CODE = 16  # UNAUTHENTICATED
REFUSED_CODE, WHY = 8, "more comes than can be answered in time; send it again later or elsewhere, or with more time"
UNITS = {"n": "div(1000)", "u": "mul(1)", "m": "mul(1000)", "S": "mul(1000000)", "M": "mul(60000000)",
         "H": "mul(3600000000)"}  # of gRPC's deadline, to microseconds
CALLERS, REFUSED = "callers", "refused"  # names within it: a door, where refusals go
PACE, DEADLINE = "pace", "deadline"  # rows of the map
SOCKET, TIMES = "socket", "times.map"  # files beside it


TEMPLATE = Template("""
global
    nbthread $threads
    stats socket unix@$socket mode 600 level admin
    hard-stop-after 10s
    tune.h2.max-concurrent-streams 1000

defaults
    mode http
    option http-no-delay
    option abortonclose
    option redispatch 1
    balance leastconn
    http-reuse always
    retries 1
    retry-on conn-failure empty-response
    timeout connect 1s
    timeout client $patience
    timeout http-keep-alive 5m
    timeout server 24d

frontend $callers
    bind $address proto h2$tls
    acl ranking path_beg /$service/
    acl small req.body,bytes(1,2),hex -m str 0000  # of the message's length, in four bytes
    http-request wait-for-body time $patience if ranking
    http-request set-header x-forwarded-for %[src]
    http-request set-var(txn.tenant) str(-)
    http-request set-var(txn.tenant) $tenant if { $tenant -m found }
    http-request track-sc0 var(txn.tenant) table tenants if ranking
    http-request set-var(txn.time) str($deadline),map_str_int($map)
$times
    http-request set-var(txn.calls) int(0)
$counted
    http-request set-var(txn.tenants) table_cnt($known)
    http-request set-var(txn.tenants) int(1) if { var(txn.tenants) -m int 0 }
    http-request set-var(txn.pace) str($pace),map_str_int($map)
    http-request set-var(txn.ahead) var(txn.calls),mul(txn.pace)
    acl late var(txn.ahead),mul(2),sub(txn.time) -m int gt 0
    acl late var(txn.ahead) -m int gt $longest
    acl too_late var(txn.ahead),sub(txn.time) -m int gt 0
    acl too_late var(txn.ahead) -m int gt $twice
    acl below_share sc0_conn_cur(tenants),mul(txn.tenants),sub(txn.calls) -m int lt 0
    use_backend $refused if ranking small late !below_share or ranking small too_late
    use_backend ranking if ranking
    default_backend others

backend tenants
    stick-table type string len 64 size 64k expire 10s store conn_cur

backend known
    stick-table type string len 64 size 64k expire 10s store conn_cur

backend $refused
    http-request return status 200 hdr grpc-status $code hdr grpc-message "$why"
    http-after-response set-header content-type application/grpc

backend ranking
    http-response track-sc1 var(txn.tenant) table known if !{ res.hdr(grpc-status) $unknown }
$workers

backend others
$workers
""")


@dataclass(frozen=True)
class BalancerPlan:
    """Callers come to `host` and `port`; workers share `workers_port` of the loopback. Where callers have tokens
    (`gated`), these name tenants, else the metadata sluice-tenant does. It ends `tls`, None for plain text."""

    host: str
    port: int
    workers_port: int
    workers: int
    gated: bool = False
    tls: TlsFiles | None = None


def configuration(plan: BalancerPlan) -> str:
    """The text. Where HAProxy works lie the socket that it is asked and told by, and the map with the pace and
    the deadline, in microseconds: a path from the root may be longer than a socket's may be."""
    longest = round(1e6 * LONGEST)
    names = [f"w{number}" for number in range(CONNECTIONS * plan.workers)]
    return TEMPLATE.substitute(
        patience=PATIENCE, counted="\n".join(map(_calls, names)),
        threads=max(plan.workers // WORKERS_OF_A_THREAD, 1), socket=SOCKET, callers=CALLERS, map=TIMES, pace=PACE,
        deadline=DEADLINE, address=address(plan.host, plan.port), tls=bound(plan.tls), service=RANKING,
        refused=REFUSED, why=WHY, code=REFUSED_CODE,
        tenant="req.hdr(authorization),sha2(256),hex" if plan.gated else "req.hdr(sluice-tenant)",
        known="known" if plan.gated else "tenants", unknown=UNKNOWN_CODE,
        longest=longest, twice=2 * longest, times="\n".join(starmap(_time, UNITS.items())),
        workers="\n".join(f"    server {name} {address('127.0.0.1', plan.workers_port)} proto h2"
                          for name in names))


def _calls(server: str) -> str:
    """Of this one, added to those of others."""
    return f"    http-request set-var(txn.calls) srv_conn(ranking/{server}),add(txn.calls)"


def _time(unit: str, microseconds: str) -> str:
    """Of a deadline in this unit."""
    return (f"    http-request set-var(txn.time) req.hdr(grpc-timeout),field(1,{unit}),{microseconds} "
            f"if {{ req.hdr(grpc-timeout) -m end {unit} }}")
