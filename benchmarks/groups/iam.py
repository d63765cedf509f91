"""Decisions at size, beside Cedar, and what judging adds to a call; a large teardown beside other tenants' calls."""

from __future__ import annotations

import itertools
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

from django.core.management import call_command
from django.db import connection

from benchmarks.harness import Contest, Figure, Group
from benchmarks.peers import cedar
from benchmarks.wsgi_client import Caller
from better_compute import Decision, Principal, Resource, compute
from better_compute.envelope import admission, early
from better_compute.store import transaction
from compute_modules.iam import lifecycle
from compute_modules.iam.authorizer import Grants
from compute_modules.iam.evaluation import Question, judge
from compute_modules.iam.facts import Changes, Facts
from compute_modules.iam.projection import AHEAD, Projection, projection

PRINCIPALS = 10_000
TENANTS = 1_000
GRANTS = 50_000
#: Grants of the small side of the flatness figure.
FEW = 1_000
#: Decisions of one sample.
CHECKS = 400
ACTIONS = ("compute:acme:read", "compute:acme:poke", "compute:iam:read", "compute:system:read")
ROWS = 100_000
CALLS = 300
OPERATOR = Principal(id="internal/bench", kind="internal")
SIZE = f"{PRINCIPALS:,} principals, {TENANTS:,} tenants, {GRANTS:,} grants"

FILL = [
    """
    INSERT INTO compute_iam_tenants (id, parent_id, kind, name, path, depth)
    SELECT 'org-' || n, 'root', 'organisation', 'org', '[]', 1 FROM generate_series(0, 99) AS n
    """,
    """
    INSERT INTO compute_iam_tenants (id, parent_id, kind, name, path, depth)
    SELECT 'p-' || n, 'org-' || n %% 100, 'project', 'p', '[]', 1 FROM generate_series(0, %(tenants)s - 102) AS n
    """,
    """
    INSERT INTO compute_iam_principals (id, kind, tenant_id, name, created_by)
    SELECT 'service/s' || n, 'service', 'root', 's', 'bench' FROM generate_series(0, %(principals)s - 1) AS n
    """,
    # Five each: inherited from an organisation, in single projects, and now and then a forbid.
    """
    INSERT INTO compute_iam_grants (id, principal_id, effect, role, patterns, tenant_id, resource_type, resource_id,
                                    inherit, reason, break_glass, created_by, revoked_by)
    SELECT gen_random_uuid(), 'service/s' || n %% %(principals)s,
           CASE WHEN n %% 20 = 0 THEN 'forbid' ELSE 'permit' END,
           CASE WHEN n %% 20 = 0 THEN '' ELSE (ARRAY['viewer', 'operator', 'viewer'])[1 + n %% 3] END,
           CASE WHEN n %% 20 = 0 THEN '["compute:acme:poke"]'::jsonb ELSE '[]' END,
           CASE WHEN n / %(principals)s = 0 THEN 'org-' || n %% 100 ELSE 'p-' || (n * 7919) %% (%(tenants)s - 101) END,
           '', '', n / %(principals)s = 0, '', false, 'bench', ''
    FROM generate_series(0, %(grants)s - 1) AS n
    """,
]


class AllowAll:
    """Judges nothing: what is left is the call without authorization."""

    def authorize(self, principal: Principal, action: str, resource: Resource, tenant_id: str | None) -> Decision:
        """Allow."""
        return Decision(True)


@contextmanager
def prepared(*, full: bool) -> Iterator[Group]:
    """Fill the tables, load the projection, and see that Cedar and we answer alike."""
    call_command("compute_migrate", verbosity=0)
    lifecycle.start(compute.context("iam"))
    with connection.cursor() as cursor:
        for statement in FILL:
            cursor.execute(statement, {"tenants": TENANTS, "principals": PRINCIPALS, "grants": GRANTS})
        cursor.execute("ANALYZE")
    facts = read(projection)
    assert len(facts.tenants) == TENANTS, len(facts.tenants)
    assert sum(len(holdings.by_id) for holdings in facts.holdings.values()) == GRANTS
    questions = asked_questions(facts)
    check_same_answers(facts, questions)
    yield Group(
        [
            *checks(facts, questions),
            *lists(),
            *calls(full),
            *teardowns(full),
        ]
    )


def read(one: Projection) -> Facts:
    with transaction.transaction():
        return one.read(compute.context("iam")).facts


def asked_questions(facts: Facts) -> list[Question]:
    """Questions of principals about tenants where they have something, and about others, half and half."""
    dice = random.Random(17)  # noqa: S311 - the same questions every time
    with transaction.transaction():
        at = projection.read(compute.context("iam")).at
    everywhere = sorted(facts.tenants)
    questions = []
    for _ in range(CHECKS):
        principal = f"service/s{dice.randrange(FEW // 5)}"
        held = sorted(facts.holdings[principal].at)
        tenant = dice.choice(held) if dice.random() < 0.5 else dice.choice(everywhere)
        questions.append(Question(principal, dice.choice(ACTIONS), tenant, at))
    return questions


def check_same_answers(facts: Facts, questions: Sequence[Question]) -> None:
    """Refuse to compare two sides that do not decide the same."""
    theirs = [cedar.Asked(facts, question, ACTIONS).allowed() for question in questions]
    ours = [judge(facts, question).allowed for question in questions]
    assert ours == theirs, [q for q, a, b in zip(questions, ours, theirs, strict=True) if a != b][:3]
    assert 0.1 < sum(ours) / len(ours) < 0.9, sum(ours) / len(ours)


def checks(facts: Facts, questions: Sequence[Question]) -> list[Figure]:
    """One decision as a call makes it: the version came with the call's first statement, and it is judged in memory."""
    whole = "authorizer's decision in an open transaction, the version read by the call's first statement; " + SIZE
    few = Projection()
    kept = {f"service/s{number}" for number in range(FEW // 5)}
    few._facts = Facts().changed(
        Changes(
            tenants=tuple(facts.tenants.values()),
            principals=tuple(facts.principals[each] for each in sorted(kept)),
            grants=tuple(grant for each in sorted(kept) for grant in facts.holdings[each].by_id.values()),
        ),
        facts.version,
        facts.generation,
    )
    slices = [cedar.Asked(facts, question, ACTIONS) for question in questions]
    ctx = compute.context("iam")

    def spent(decide: Callable[[Question], object]) -> list[float]:
        found = []
        for question in questions:
            began = time.perf_counter_ns()
            decide(question)
            found.append((time.perf_counter_ns() - began) / 1e6)
        return found

    def times(one: Projection) -> list[float]:
        with transaction.transaction():
            row = ctx.sql.query(f"SELECT {AHEAD} AS read, compute_now() AS at").rows[0]
            return spent(lambda question: judge(one.read_ahead(ctx, row["read"], row["at"]).facts, question))

    def times_with_a_statement() -> list[float]:
        with transaction.transaction():
            return spent(lambda question: judge(projection.read(ctx).facts, question))

    def decisions() -> float:
        began = time.perf_counter()
        for question in questions:
            judge(facts, question)
        return len(questions) / (time.perf_counter() - began)

    alone = "the same with a statement of its own for the version, as a check outside of a call"
    p50 = Contest(
        "iam check, median",
        "ms",
        {
            "ours": lambda: statistics.median(times(projection)),
            "1,000 grants": lambda: statistics.median(times(few)),
            "own statement": lambda: statistics.median(times_with_a_statement()),
        },
        rounds=15,
        configuration={"ours": whole, "1,000 grants": "the same with 1,000 grants", "own statement": alone},
    )
    p99 = Contest(
        "iam check, 99th percentile",
        "ms",
        {
            "ours": lambda: statistics.quantiles(times(projection), n=100)[98],
            "own statement": lambda: statistics.quantiles(times_with_a_statement(), n=100)[98],
        },
        rounds=9,
        configuration={"ours": whole, "own statement": alone},
    )
    beside = Contest(
        "iam decisions",
        "decisions/s",
        {"ours": decisions, "Cedar": lambda: cedar.decisions_per_second(slices)},
        rounds=9,
        configuration={
            "ours": "the evaluator with all facts in memory, as Cedar has its slice; no statement either; " + SIZE,
            "Cedar": cedar.CONFIGURATION,
        },
    )
    return [
        Figure("iam: check p50", p50, None, "<= 1 ms"),
        Figure("iam: check p99", p99, None, "<= 5 ms"),
        Figure("iam: check with 50,000 grants beside 1,000", p50, "1,000 grants", "<= 1.5 x"),
        Figure("iam: check beside Cedar", beside, "Cedar", ">= 1 x", note="both sides in memory, no database"),
    ]


def lists() -> list[Figure]:
    """Which of 1,000 tenants somebody may read, through the envelope."""
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO compute_iam_grants (id, principal_id, effect, role, patterns, tenant_id, resource_type,"
            " resource_id, inherit, reason, break_glass, created_by, revoked_by)"
            " VALUES (gen_random_uuid(), 'service/s1', 'permit', 'viewer', '[]', 'root', '', '', true, '', false, '',"
            " '')"
        )
    ask = {"tenantId": "root", "action": "compute:acme:read", "principal": "service/s1"}

    def listed() -> float:
        began = time.perf_counter()
        answer = compute.api.iam.list_allowed(OPERATOR, ask)
        assert len(answer.ids) == TENANTS, len(answer.ids)
        return (time.perf_counter() - began) * 1_000

    contest = Contest(
        "iam.listAllowed of 1,000",
        "ms",
        {"ours": listed},
        rounds=15,
        configuration={"ours": "iam.listAllowed in process, envelope included; " + SIZE},
    )
    return [Figure("iam: listAllowed of 1,000 resources", contest, None, "<= 50 ms")]


@contextmanager
def judging(authorizer: Any) -> Iterator[None]:
    """Have calls judged by ``authorizer``: by what it has read with the first statement, and what it decides."""
    with ExitStack() as stack:
        for module in (early, admission):
            stack.enter_context(mock.patch.object(module, "authorizer", return_value=authorizer))
        yield


def calls(full: bool) -> list[Figure]:
    """A query method judged by grants, beside the same call with an authorizer that judges nothing."""
    secret = compute.api.tokens.create(
        OPERATOR, {"tenantId": "root", "principal": "service/s1", "label": "bench"}
    ).secret
    caller = Caller(secret)
    body = itertools.repeat(b'{"tenantId":"p-1"}')
    count = CALLS * 3 if full else CALLS

    def judged_by(authorizer: Any) -> Callable[[], float]:
        def measure() -> float:
            with judging(authorizer):
                caller.median_us("/api/compute/plugins/acme/widgets/count", body, 20)
                return caller.median_us("/api/compute/plugins/acme/widgets/count", body, count)

        return measure

    contest = Contest(
        "query method, authorization",
        "µs/call",
        {"ours": judged_by(Grants()), "no authorization": judged_by(AllowAll())},
        rounds=15,
        configuration={
            "ours": "acme.widgets.count through WSGIHandler with a scoped token, judged by grants; " + SIZE,
            "no authorization": "the same call and token with an authorizer that allows everything",
        },
    )
    return [Figure("iam: query method beside one without authorization", contest, "no authorization", "<= 1.3 x")]


def teardowns(full: bool) -> list[Figure]:
    """The 99th percentile of another tenant's calls while 100,000 rows of a deleted one go, beside a quiet time."""
    numbers = itertools.count()
    operator = AllowAll()
    secret = compute.api.tokens.create(
        OPERATOR, {"tenantId": "root", "principal": "service/s2", "label": "bench"}
    ).secret
    caller = Caller(secret)
    body = itertools.repeat(b'{"tenantId":"p-1"}')

    def p99() -> float:
        spent: list[float] = []
        with judging(operator):
            while len(spent) < CALLS * 4:
                began = time.perf_counter_ns()
                caller.post("/api/compute/plugins/acme/widgets/count", next(body))
                spent.append((time.perf_counter_ns() - began) / 1e6)
        return statistics.quantiles(spent, n=100)[98]

    def busy() -> float:
        tenant = f"gone-{next(numbers)}"
        with connection.cursor() as cursor:
            cursor.execute(
                "INSERT INTO plg_acme_widget (id, tenant_id)"
                " SELECT %s || '-' || n, %s FROM generate_series(1, %s) AS n",
                [tenant, tenant, ROWS],
            )
        with worker():
            compute.api.tenants.delete(OPERATOR, {"tenantId": tenant, "reason": "bench"})
            found = p99()
            left = compute.api.tenants.deletion_status(OPERATOR, {"tenantId": tenant})
            assert left.phase == "deleting", "the teardown ended before the calls did"
            assert left.passes > 0, "no pass was made meanwhile"
        with connection.cursor() as cursor:
            cursor.execute("DELETE FROM plg_acme_widget WHERE tenant_id = %s", [tenant])
        return found

    contest = Contest(
        "other tenants' calls during a teardown",
        "ms",
        {"ours": busy, "quiet": p99},
        rounds=7,
        configuration={
            "ours": f"p99 of {CALLS * 4} query calls while a worker process tears down a tenant of {ROWS:,} rows",
            "quiet": "the same calls with no teardown",
        },
    )
    return [Figure("iam: other tenants' p99 during a teardown", contest, "quiet", "<= 1.3 x")]


@contextmanager
def worker() -> Iterator[None]:
    """A process that steps the tenancy reconciler."""
    command = [sys.executable, "-m", "benchmarks.teardown_worker"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline() == "ready\n"
        try:
            yield
        finally:
            process.stdin.close()
            process.wait(30)
