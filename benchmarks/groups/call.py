"""What the envelope costs beside a hand-written view that does the same work."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import connection

from benchmarks import api_server, codecs, over_http
from benchmarks.harness import Contest, Figure, Group
from benchmarks.peers import bare_drf, same_work
from benchmarks.wsgi_client import Caller
from better_compute.envelope import tokens

#: Many short rounds: what else the machine does then falls on both sides alike.
CALLS = 50
ROUNDS = 25
#: Replays of a round, and rounds: 10,000 in all.
REPLAYS = 2_000
REPLAY_ROUNDS = 5
TENANT = "t1"
CONFIGURATION = {
    "ours": "ComputeViewSet method through WSGIHandler; superuser's token, persistent connection, no middleware",
    "bare DRF": bare_drf.CONFIGURATION,
}


def fresh_widgets(prefix: str) -> Iterator[bytes]:
    """Bodies of pokes, each of a widget that does not exist yet."""
    for number in itertools.count():
        yield b'{"tenantId":"%s","widgetId":"%s-%d"}' % (TENANT.encode(), prefix.encode(), number)


@contextmanager
def prepared(*, full: bool) -> Iterator[Group]:
    """Migrate, make a token, and check that both sides answer the same bytes and write the same rows."""
    calls = CALLS * 5 if full else CALLS
    call_command("compute_migrate", verbosity=0)
    user = User.objects.create_superuser("bench")
    secret, _ = tokens.create(user=user, label="bench", tenant_id=TENANT)
    caller = Caller(secret)
    ours, bare = fresh_widgets("ours"), fresh_widgets("bare")
    query = itertools.repeat(b'{"tenantId":"%s"}' % TENANT.encode())
    check_same_work(caller, ours, bare)
    over_http.fill()
    everywhere, _ = tokens.create(user=user, label="bench over HTTP", tenant_id=None)
    over_http.check_same_work(Caller(everywhere))

    def measure(path: str, bodies: Iterator[bytes]) -> Callable[[], float]:
        return lambda: caller.median_us(path, bodies, calls)

    queries = Contest(
        "query method in process",
        "µs/call",
        {
            "ours": measure("/api/compute/plugins/acme/widgets/count", query),
            "bare DRF": measure("/bare/widgets/count", query),
        },
        rounds=ROUNDS,
        configuration=CONFIGURATION,
    )
    mutations = Contest(
        "mutation method in process",
        "µs/call",
        {
            "ours": measure("/api/compute/plugins/acme/widgets/poke", ours),
            "bare DRF": measure("/bare/widgets/poke", bare),
        },
        rounds=ROUNDS,
        configuration=CONFIGURATION,
    )
    replays = Contest(
        "replays of one Idempotency-Key",
        "double effects",
        {"ours": lambda: double_effects(caller)},
        rounds=REPLAY_ROUNDS,
        configuration={"ours": f"{REPLAYS} calls a round under one key each, {REPLAY_ROUNDS} rounds counted"},
    )
    figures = [
        Figure("call: query method in process", queries, "bare DRF", "<= 1.6 x"),
        Figure("call: mutation method in process", mutations, "bare DRF", "<= 1.5 x"),
    ]
    figures += codecs.figures(over_http.LISTED, same_work.page(over_http.LISTED, over_http.ITEMS))
    with api_server.serving(everywhere) as server:
        figures += over_http.figures(server, over_http.CALLS * 5 if full else over_http.CALLS)
        if full:
            memory = over_http.memory(server)
            figures += [
                Figure("call: double effects of 10,000 replays", replays, None, "<= 0 double effects"),
                Figure("call: memory after 100,000 requests", memory, None, f"<= 1.05 {memory.unit}"),
            ]
        yield Group(figures)


_rounds = itertools.count()


def double_effects(caller: Caller) -> float:
    """Call again and again under one key; how often it had its effect beyond the first time. Raises for any."""
    key = f"bench-{next(_rounds)}"
    body = b'{"tenantId":"%s","widgetId":"%s"}' % (TENANT.encode(), key.encode())
    before = counts()
    for _ in range(REPLAYS + 1):
        assert caller.post("/api/compute/plugins/acme/widgets/poke", body, key=key) == b'{"poked":"%s"}' % key.encode()
    effects = [after - earlier for after, earlier in zip(counts(), before, strict=True)]
    doubled = max(effects) - 1
    # A median over rounds would hide a single one.
    assert doubled == 0, effects
    return float(doubled)


COUNTS = """
SELECT (SELECT count(*) FROM plg_acme_widget), (SELECT count(*) FROM compute_outbox),
       (SELECT count(*) FROM compute_audit_events), (SELECT generation FROM compute_work WHERE kind = 'acme.widgets'
          AND key = %s)
"""


def check_same_work(caller: Caller, ours: Iterator[bytes], bare: Iterator[bytes]) -> None:
    """Refuse to compare two sides that do not do the same."""
    query = b'{"tenantId":"%s"}' % TENANT.encode()
    answers = {caller.post(path, query) for path in ("/api/compute/plugins/acme/widgets/count", "/bare/widgets/count")}
    assert answers == {b'{"count":0}'}, answers
    caller.post("/api/compute/plugins/acme/widgets/poke", next(ours))
    first = counts()
    caller.post("/bare/widgets/poke", next(bare))
    second = counts()
    assert [b - a for a, b in zip(first, second, strict=True)] == [1, 1, 1, 1], (first, second)


def counts() -> tuple[int, ...]:
    """Rows of each kind that a poke writes."""
    with connection.cursor() as cursor:
        cursor.execute(COUNTS, [TENANT])
        row: tuple[int, ...] = cursor.fetchone()
        return row
