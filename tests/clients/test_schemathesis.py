"""Every operation of the OpenAPI document, called with what its schema allows and with what it does not, one by one and
along the document's links. A run ends in a table of what was answered; ``SCHEMATHESIS_SEED=n`` makes another run.

All of schemathesis' checks judge every answer. One exception has a reason: a schema cannot say everything, so an input
that it allows may still be refused by a rule (a cursor that nobody signed, an action that no hosted module has). Such a
refusal is a 400 that the codec did not give, and is not held against `positive_data_acceptance`. Nor is that of a NUL
character, which the document forbids once for all texts instead of in a pattern on each.
"""

from __future__ import annotations

import json
import os
from collections import Counter, defaultdict
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import hypothesis
import pytest
import schemathesis
from django.contrib.auth import get_user_model
from django.core.handlers.wsgi import WSGIHandler
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Flaky
from schemathesis.checks import CHECKS, load_all_checks
from schemathesis.specs.openapi.checks import positive_data_acceptance

from better_compute.envelope import openapi, tokens

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

#: Examples of each operation.
EXAMPLES = 6
#: Walks along links, and the calls of each.
WALKS, STEPS = 12, 12
#: Without one a run is the same every time.
SEED = os.environ.get("SCHEMATHESIS_SEED", "")

load_all_checks()


class Answers:
    """What was called, how often, and with which statuses it was answered."""

    def __init__(self) -> None:
        self.statuses: dict[str, Counter[int]] = defaultdict(Counter)
        self.links: set[str] = set()
        self.failures: list[str] = []
        #: Refusals by a rule of the method, which the one exception lets pass.
        self.excused = 0

    def note(self, case: Any, response: Any) -> None:
        self.statuses[case.operation.label][response.status_code] += 1

    def table(self, title: str) -> str:
        rows = [
            f"{label:<48} {sum(found.values()):>5}  " + " ".join(f"{code}:{n}" for code, n in sorted(found.items()))
            for label, found in sorted(self.statuses.items())
        ]
        calls = sum(sum(found.values()) for found in self.statuses.values())
        checks = ", ".join(each.__name__ for each in CHECKS.get_all())
        lines = [title, f"{'operation':<48} {'calls':>5}  answers", *rows]
        lines.append(f"{calls} calls of {len(rows)} operations, {len(self.links)} links followed")
        lines.append(f"checks: {checks}; {self.excused} refusals by a rule excused from positive_data_acceptance")
        return "\n".join(lines)


def chosen(**more: Any) -> settings:
    return settings(
        deadline=None,
        database=None,
        derandomize=not SEED,
        suppress_health_check=list(HealthCheck),
        **more,
    )


def seeded(test: Any) -> Any:
    return hypothesis.seed(int(SEED))(test) if SEED else test


def judged(answers: Answers, case: Any, response: Any, headers: dict[str, str]) -> None:
    """Hold an answer to every check, and note what it fails.

    Nothing is raised: the same call may be answered otherwise once the first has changed something, so a search for
    a smaller example of a failure would end in a complaint about the search.
    """
    answers.note(case, response)
    excused = refused_by_a_rule(response)
    answers.excused += excused
    excluded = [positive_data_acceptance] if excused else []
    try:
        case.validate_response(response, headers=headers, excluded_checks=excluded)
    except BaseException as error:  # a group of failures is none of Exception's
        call = case.as_curl_command(dict.fromkeys(headers, "..."))
        answers.failures.append(f"{told(case.operation.label, error)}\n{call}\n{response.content[:1_000]!r}")


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


def loaded() -> Any:
    schema = schemathesis.openapi.from_dict(json.loads(openapi.encode()))
    schema.app = WSGIHandler()
    return schema


Told = Callable[[str, object], None]


def test_every_operation_keeps_what_the_document_says(headers: dict[str, str], record_property: Told) -> None:
    answers = Answers()
    for result in loaded().get_all_operations():
        operation = result.ok()

        @seeded
        @chosen(max_examples=EXAMPLES, phases=[Phase.explicit, Phase.generate])
        @given(case=operation.as_strategy())
        def calls(case: Any) -> None:
            judged(answers, case, case.call(headers=headers), headers)

        # See below: what Hypothesis calls flaky is no failure of ours, and failures are noted when they are met.
        with suppress(Flaky):
            calls()
    record_property("report", answers.table("schemathesis: each operation by itself"))
    assert len(answers.statuses) > 40
    assert not answers.failures, "\n\n".join(answers.failures)


def test_every_operation_keeps_it_along_the_links_too(headers: dict[str, str], record_property: Told) -> None:
    answers = Answers()

    @seeded
    class Walk(loaded().as_state_machine()):  # type: ignore[misc]
        def step(self, input: Any) -> Any:
            if input.transition is not None and input.is_applied:
                answers.links.add(str(input.transition.id))
            return super().step(input)

        def get_call_kwargs(self, case: Any) -> dict[str, Any]:
            return {"headers": headers}

        def validate_response(self, response: Any, case: Any, **_: Any) -> None:
            judged(answers, case, response, headers)

    # Every failure is noted when it is met. What Hypothesis calls flaky is a walk that it began anew and that went
    # another way, as it must where the first one has changed something; the walks that are left are not taken then.
    with suppress(Flaky):
        Walk.run(settings=chosen(max_examples=WALKS, stateful_step_count=STEPS, phases=[Phase.generate]))
    record_property("report", answers.table("schemathesis: along the links"))
    assert not answers.failures, "\n\n".join(answers.failures)
    # Which ones a run comes by changes with every change of the document; runs of other seeds came by 3 to 11.
    assert len(answers.links) > 2
