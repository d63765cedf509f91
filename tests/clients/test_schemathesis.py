"""Every operation of the OpenAPI document, called with what its schema allows and with what it does not.

All of schemathesis' checks judge every answer. One exception has a reason: a schema cannot say everything, so an input
that it allows may still be refused by a rule (a cursor that nobody signed, an action that no hosted module has). Such a
refusal is a 400 that the codec did not give, and is not held against `positive_data_acceptance`. Nor is that of a NUL
character, which the document forbids once for all texts instead of in a pattern on each.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
import schemathesis
from django.contrib.auth import get_user_model
from django.core.handlers.wsgi import WSGIHandler
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import load_all_checks
from schemathesis.specs.openapi.checks import positive_data_acceptance

from better_compute.envelope import openapi, tokens

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

#: Examples of each operation.
EXAMPLES = 6

load_all_checks()


@pytest.fixture
def headers() -> dict[str, str]:
    user = get_user_model().objects.create_superuser("selma")
    secret, _ = tokens.create(user=user, label="schemathesis", tenant_id=None)
    return {"Authorization": f"Bearer {secret}"}


def refused_by_a_rule(response: Any) -> bool:
    """Whether a 400 came from the method's rules and not from the codec, which judges by the schema."""
    if response.status_code != 400:
        return False
    problem = response.json()
    by_schema = problem.get("mend", "").startswith("Correct the input where")
    return not by_schema or problem["detail"].startswith("The text holds a NUL character")


def told(operation: str, error: BaseException) -> str:
    """A failure with everything below it."""
    below = "".join(f"\n  {each}" for each in getattr(error, "exceptions", ()))
    return f"== {operation}: {type(error).__name__}: {error}{below}"


def test_every_operation_keeps_what_the_document_says(headers: dict[str, str]) -> None:
    schema = schemathesis.openapi.from_dict(json.loads(openapi.encode()))
    schema.app = WSGIHandler()
    failures: dict[str, BaseException] = {}
    tried = 0
    for result in schema.get_all_operations():
        operation = result.ok()

        @settings(
            max_examples=EXAMPLES,
            deadline=None,
            database=None,
            derandomize=True,
            phases=[Phase.explicit, Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy())
        def calls(case: Any) -> None:
            response = case.call(headers=headers)
            excluded = [positive_data_acceptance] if refused_by_a_rule(response) else []
            case.validate_response(response, headers=headers, excluded_checks=excluded)

        tried += 1
        try:
            calls()
        except BaseException as error:  # a group of failures is none of Exception's
            failures[operation.label] = error
    assert tried > 40
    assert not failures, "\n\n".join(told(label, error) for label, error in failures.items())
