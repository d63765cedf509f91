"""The same API three times behind one granian: ours, with DRF serializers, with django-ninja."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from django.db import connection

from benchmarks.api_server import CLIENTS, THREADS, ApiServer, Asked
from benchmarks.bars import STATED
from benchmarks.harness import Contest, Figure
from benchmarks.peers import django_ninja, drf_serializers
from benchmarks.wsgi_client import Caller
from better_compute.store import transaction
from better_compute.store.work import WorkRow

TENANT = "t1"
QUIET_TENANT = "t2"
LISTED = "bench.listed"
#: Items of a page: what a list method answers when it is not asked for another number.
ITEMS = 50
#: Of each method, a sample; and rounds.
CALLS = 80
ROUNDS = 7
#: Requests before memory is first looked at, and in all.
SETTLED = 20_000
LASTING = 100_000
#: Further requests before each of the samples.
BETWEEN = 500

PREFIXES = {"ours": "/api/compute/", "DRF serializers": "/drf/", "django-ninja": "/ninja/"}
CONFIGURATION = {
    "ours": f"compute_serve's granian: 1 process, {THREADS} threads; {CLIENTS} clients, keep-alive; no middleware",
    "DRF serializers": drf_serializers.CONFIGURATION,
    "django-ninja": django_ninja.CONFIGURATION,
}
#: Each side's path below its prefix.
PATHS = {
    "query": {"ours": "plugins/acme/widgets/count", "": "widgets/count"},
    "list": {"ours": "work/list", "": "work/list"},
    "mutation": {"ours": "plugins/acme/widgets/poke", "": "widgets/poke"},
}
_serial = itertools.count()


def asked(side: str, method: str) -> Iterator[Asked]:
    """A contestant's requests for a method, without end."""
    path = PREFIXES[side] + PATHS[method].get(side, PATHS[method][""])
    if method == "query":
        return itertools.repeat(Asked(f"{path}?tenantId={QUIET_TENANT}"))
    if method == "list":
        return itertools.repeat(Asked(f"{path}?kind={LISTED}&limit={ITEMS}"))
    bodies = (b'{"tenantId":"%s","widgetId":"h-%d"}' % (TENANT.encode(), next(_serial)) for _ in itertools.count())
    return (Asked(path, body) for body in bodies)


def fill() -> None:
    """Put a page of keys into the queue."""
    with transaction.transaction():
        transaction.enqueue([WorkRow(LISTED, f"key-{number:04}", -1) for number in range(ITEMS)])


def figures(server: ApiServer, calls: int) -> list[Figure]:
    """Calls a second of the whole API, its methods in turn, and of each of them; ``calls`` of each a sample."""
    whole = _contest(server, "query, list and mutation in turn", list(PATHS), calls * 3)
    found = [
        Figure("call: the API over HTTP beside DRF serializers", whole, "DRF serializers", ">= 1.5 x"),
        Figure("call: the API over HTTP beside django-ninja", whole, "django-ninja", ">= 1.2 x"),
    ]
    for method in PATHS:
        alone = _contest(server, method, [method], calls)
        for peer in ("DRF serializers", "django-ninja"):
            found.append(Figure(f"call: {method} over HTTP beside {peer}", alone, peer, STATED))
    return found


def _contest(server: ApiServer, what: str, methods: Sequence[str], calls: int) -> Contest:
    return Contest(
        f"{what} over HTTP, {CLIENTS} clients",
        "calls/s",
        {side: _rate(server, side, methods, calls) for side in PREFIXES},
        rounds=ROUNDS,
        configuration=CONFIGURATION,
    )


def _rate(server: ApiServer, side: str, methods: Sequence[str], calls: int) -> Callable[[], float]:
    lines = [asked(side, method) for method in methods]
    requests = itertools.chain.from_iterable(zip(*lines, strict=False))
    return lambda: server.rate(requests, calls)


def check_same_work(caller: Caller) -> None:
    """Refuse to compare sides that answer other bytes or ask other things of the database."""
    for method in PATHS:
        seen, answered = {}, {}
        for side in PREFIXES:
            requests = asked(side, method)
            call(caller, next(requests))
            request = next(requests)
            with statements() as seen[side]:
                answer = call(caller, request)
            answered[side] = re.sub(rb"h-\d+", b"h", answer)
        assert len(set(answered.values())) == 1, (method, answered)
        for side in PREFIXES:
            assert seen[side] == seen["ours"], (method, side, seen[side], seen["ours"])


def memory(server: ApiServer) -> Contest:
    """Resident memory of a server after :data:`LASTING` requests and more, over that after :data:`SETTLED`."""
    lines = [asked("ours", method) for method in PATHS]
    refused = itertools.cycle([Asked("/api/compute/plugins/acme/widgets/poke", b"{"), Asked("/api/compute/no/method")])
    requests = itertools.chain.from_iterable(zip(*lines, refused, strict=False))
    settled = 0.0

    def use(count: int) -> None:
        server.call((server.request(next(requests)) for _ in range(count)), (b"200", b"400", b"404"))

    def measure() -> float:
        nonlocal settled
        if not settled:
            use(SETTLED)
            settled = float(server.rss_bytes())
            use(LASTING - SETTLED)
        else:
            use(BETWEEN)
        return server.rss_bytes() / settled

    return Contest(
        "memory of an API process",
        f"x of {SETTLED:,} requests",
        {"ours": measure},
        configuration={"ours": "query, list, mutation and a refusal in turn; no sample before the last of 100,000"},
    )


def call(caller: Caller, asked: Asked) -> bytes:
    """Make the request without a socket."""
    if asked.body:
        return caller.post(asked.path, asked.body)
    return caller.get(*asked.path.split("?"))


class statements:
    """The statements that are sent meanwhile, in order."""

    def __enter__(self) -> list[str]:
        self.seen: list[str] = []
        self._watching = connection.execute_wrapper(self._watch)
        self._watching.__enter__()
        return self.seen

    def __exit__(self, *ended: Any) -> None:
        self._watching.__exit__(*ended)

    def _watch(self, execute: Any, sql: str, params: Any, many: bool, context: Mapping[str, Any]) -> Any:
        self.seen.append(" ".join(sql.split()))
        return execute(sql, params, many, context)
