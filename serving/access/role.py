"""What callers may be allowed to do, and which of it each method of the server asks for.

    ranking          Rank, Score, WhyNot
    events           RecordEvents: what happened to what was shown
    catalogue        what is served: the catalogue's changes (sluice.v1.Catalog), and version and age of the bundle, in
                     the trailing metadata of a health check
    administration   that, and every other method: reflection, and whatever is not named here
    nobody's         status of health (Check, Watch), which balancers ask for without a token
"""

from __future__ import annotations

from collections.abc import Set
from enum import StrEnum

from serving.proto import sluice_pb2 as pb

RANKING_SERVICE = pb.DESCRIPTOR.services_by_name["Ranking"].full_name
CATALOG_SERVICE = pb.DESCRIPTOR.services_by_name["Catalog"].full_name
EVENTS_SERVICE = pb.DESCRIPTOR.services_by_name["Events"].full_name
HEALTH_SERVICE = "grpc.health.v1.Health"


class Role(StrEnum):
    """Named so in access files and in the claims of a JWT."""

    RANKING = "ranking"
    EVENTS = "events"
    CATALOGUE = "catalogue"
    ADMINISTRATION = "administration"


ROLES = {RANKING_SERVICE: Role.RANKING, EVENTS_SERVICE: Role.EVENTS, CATALOG_SERVICE: Role.CATALOGUE}
SEES_FIGURES = frozenset({Role.CATALOGUE, Role.ADMINISTRATION})


def role_for(method: str) -> Role | None:
    """The role that a method asks for, by its path on the wire (/SERVICE/METHOD); None where it asks for none."""
    service = method.strip("/").partition("/")[0]
    if service == HEALTH_SERVICE:
        return None
    return ROLES.get(service, Role.ADMINISTRATION)


def listed(roles: Set[Role]) -> str:
    """For a sentence."""
    return ", ".join(sorted(roles)) or "none"
