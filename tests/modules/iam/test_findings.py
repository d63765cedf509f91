"""What operators are told of who may do what."""

from __future__ import annotations

from typing import Any

import pytest
from django.conf import settings
from django.test import override_settings

from better_compute import Principal, compute
from compute_modules.iam.authorizer import Grants
from tests.modules.iam.conftest import OPERATOR, grant, service

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("world")]


class Stricter(Grants):
    """A host's own authorizer, on top of the module's."""


def findings() -> dict[str, Any]:
    return {finding.check: finding for finding in compute.self_check().findings}


@pytest.mark.parametrize(
    ("authorizer", "told"),
    [
        ("compute_modules.iam.authorizer.Grants", True),
        (f"{__name__}.Stricter", True),
        ("better_compute.envelope.authorize.DjangoPermissions", False),
        ("", False),
    ],
)
def test_a_root_without_an_owner_is_told_where_grants_judge_whoever_wraps_them(authorizer: str, told: bool) -> None:
    with override_settings(COMPUTE={**settings.COMPUTE, "IAM": authorizer}):
        assert ("iam.no-owner" in findings()) is told
        service("only")
        grant("only", "root", "owner", inherit=True)
        assert "iam.no-owner" not in findings()


def test_tokens_whose_maker_may_not_call_any_more_are_told(django_user_model: Any) -> None:
    service("fresh", home="own")
    service("operator", home="own")
    grant("operator", "own", "operator")
    user = django_user_model.objects.create_user("mary")
    grant(f"user/{user.pk}", "own", "operator")
    makers = (
        Principal(id="service/operator", kind="internal", acts_for="service/operator"),
        Principal(id=f"user/{user.pk}", kind="session", user=user),
        OPERATOR,
    )
    ask = {"tenantId": "own", "label": "t", "principal": "service/fresh"}
    made = [compute.api.tokens.create(by, ask).token for by in makers]
    assert "iam.token-orphaned" not in findings()
    django_user_model.objects.filter(pk=user.pk).update(is_active=False)
    told = findings()["iam.token-orphaned"]
    assert (told.count, f"user/{user.pk}" in told.message) == (1, True)
    compute.api.tokens.revoke(OPERATOR, {"tokenId": made[1].id})
    compute.api.service_accounts.disable(OPERATOR, {"principal": "service/operator"})
    assert "service/operator" in findings()["iam.token-orphaned"].message
