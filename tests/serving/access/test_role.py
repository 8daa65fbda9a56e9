from __future__ import annotations

import pytest

from serving.access.role import Role, listed, role_for


@pytest.mark.parametrize(("method", "role"), [
    ("/sluice.v1.Ranking/Rank", Role.RANKING), ("/sluice.v1.Ranking/Score", Role.RANKING),
    ("/sluice.v1.Events/RecordEvents", Role.EVENTS), ("/grpc.health.v1.Health/Check", None),
    ("/grpc.health.v1.Health/Watch", None),
    ("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", Role.ADMINISTRATION),
    ("/sluice.v1.Ranking.evil/Rank", Role.ADMINISTRATION), ("/grpc.health.v1.Health2/Check", Role.ADMINISTRATION),
    ("/sluice.v1.Catalog/Upsert", Role.CATALOGUE), ("/sluice.v1.Catalog/Status", Role.CATALOGUE),
    ("", Role.ADMINISTRATION), ("/", Role.ADMINISTRATION), ("//sluice.v1.Ranking/Rank", Role.RANKING),
])
def test_what_is_not_named_is_for_administration(method: str, role: Role | None) -> None:
    assert role_for(method) is role


def test_roles_in_a_sentence() -> None:
    assert listed({Role.RANKING, Role.CATALOGUE}) == "catalogue, ranking"
    assert listed(set()) == "none"
