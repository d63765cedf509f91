"""The data that iam's migrations move, with the rows that they find."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth import get_user_model

from better_compute.access import Token
from better_compute.testing.fixtures import module_at as module_at

pytestmark = pytest.mark.django_db(transaction=True)

ModuleAt = Callable[[str, str | None], Any]


def add_token(models: Any, principal: str, made_by: str) -> uuid.UUID:
    """A scoped token of before its makers were kept."""
    id = uuid.uuid4()
    models.get_model("compute_iam", "ScopedToken").objects.create(
        id=id,
        digest=id.bytes * 2,
        hint="bci_",
        principal_id=principal,
        home_tenant_id="org",
        label="x",
        created_by=made_by,
    )
    return id


def makers(models: Any) -> dict[uuid.UUID, list[str]]:
    """Who bounds each token."""
    return dict(models.get_model("compute_iam", "ScopedToken").objects.values_list("id", "makers"))


def test_tokens_that_were_there_are_bounded_by_whoever_made_them_along_the_chain(module_at: ModuleAt) -> None:
    old = module_at("iam", "0002_inbox")
    own = add_token(old, "user/1", "user/1")
    trusted = add_token(old, "service/a", "internal/setup")
    first = add_token(old, "service/a", "user/1")
    second = add_token(old, "service/b", f"iam-token/{first}")
    same = add_token(old, "service/b", f"iam-token/{second}")
    by_own = add_token(old, "service/a", f"iam-token/{own}")
    by_trusted = add_token(old, "service/b", f"iam-token/{trusted}")
    assert makers(module_at("iam", "0003_token_makers")) == {
        own: [],
        trusted: [],
        first: ["user/1"],
        second: ["user/1", "service/a"],
        same: ["user/1", "service/a"],
        by_own: ["user/1"],
        by_trusted: ["service/a"],
    }


def test_tokens_that_were_made_with_a_core_token_are_bounded_by_its_user(module_at: ModuleAt) -> None:
    user = get_user_model()._default_manager.create(username="maker")
    core = Token.objects.create(user=user, digest=b"d" * 32, hint="bct_", label="x")
    old = module_at("iam", "0002_inbox")
    first = add_token(old, "service/a", f"token/{core.id}")
    second = add_token(old, "service/b", f"iam-token/{first}")
    own = add_token(old, f"user/{user.pk}", f"token/{core.id}")
    by_own = add_token(old, "service/a", f"iam-token/{own}")
    gone = f"token/{uuid.uuid4()}"
    orphan = add_token(old, "service/a", gone)
    who = f"user/{user.pk}"
    assert makers(module_at("iam", "0005_core_token_makers")) == {
        first: [who],
        second: [who, "service/a"],
        own: [],
        by_own: [who],
        # Nobody of that name holds anything, so that the token must be rotated by somebody who does.
        orphan: [gone],
    }


def test_a_token_made_since_makers_are_kept_keeps_them(module_at: ModuleAt) -> None:
    old = module_at("iam", "0004_pages")
    token = old.get_model("compute_iam", "ScopedToken")
    first = add_token(old, "service/a", "user/1")
    token.objects.filter(id=first).update(makers=["user/1"])
    assert makers(module_at("iam", "0005_core_token_makers")) == {first: ["user/1"]}


def test_unapplying_and_applying_the_makers_again_finds_the_same(module_at: ModuleAt) -> None:
    old = module_at("iam", "0002_inbox")
    first = add_token(old, "service/a", "user/1")
    module_at("iam", "0005_core_token_makers")
    module_at("iam", "0002_inbox")
    assert makers(module_at("iam", "0005_core_token_makers")) == {first: ["user/1"]}
